// SPDX-License-Identifier: MIT
//
// Files to memory of another machine and back: LITE moves their pages, other arms copy or register
// them. HotI'07 measured this for RDMA and sendfile(2).
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "../workload.hpp"
#include "file_mover.hpp"
#include "processor.hpp"
#include "sample_file.hpp"

namespace perf {

namespace {

enum class Kind : std::uint8_t { send, send_cold, receive };

constexpr std::uint64_t warm_up_bytes = 256 << 10;
constexpr std::size_t piece = 1 << 20;

/// A shape as the user chose it, and what it becomes for the size of the file.
struct Chosen {
    Shape named;
    Shape shape;
};

/// The chosen shapes, without those that become the same for a file of this size.
std::vector<Chosen> chosen_shapes(const Choice& choice, std::uint64_t size) {
    std::vector<Chosen> result;
    for (const unsigned pages : choice.pages) {
        for (const unsigned pipes : choice.pipes) {
            const Shape shape = shape_of(size, {pipes, pages});
            if (std::ranges::find(result, shape, &Chosen::shape) == result.end())
                result.push_back({{pipes, pages}, shape});
        }
    }
    return result;
}

/// What the contestants of a size share: all move this file.
class Parcel {
  public:
    Parcel(Kind kind, const Field& field, std::uint64_t size)
        : kind_(kind),
          file_(field.choice().directory, size),
          copy_(field.choice().directory, kind == Kind::receive ? size : 1),
          processors_(field.target()) {}

    bool knows_both() const { return processors_.knows_both(); }
    Busy busy() const { return processors_.busy(); }
    std::uint64_t bytes() const { return file_.bytes(); }
    bool is_cold() const { return kind_ == Kind::send_cold; }
    void drop() const { file_.drop(); }

    void move(FileMover& mover, std::uint64_t length, Shape shape) const {
        if (kind_ == Kind::receive)
            mover.receive(copy_.fd(), length, shape);
        else
            mover.send(file_.fd(), length, shape);
    }

    /// Sends the file, for Kind::receive also receives it back, and compares all bytes after each
    /// way. Throws if any is wrong.
    void verify(FileMover& mover, std::string_view name, Shape shape) const {
        mover.send(file_.fd(), bytes(), shape);
        compare(name,
                [&](std::uint64_t offset, std::span<std::byte> to) { mover.fetch(offset, to); });
        if (kind_ != Kind::receive)
            return;
        copy_.clear();
        mover.receive(copy_.fd(), bytes(), shape);
        compare(name, [&](std::uint64_t offset, std::span<std::byte> to) {
            read_at(copy_.fd(), to, offset);
        });
    }

  private:
    template <typename Fetch>
    void compare(std::string_view name, Fetch&& fetch) const {
        std::vector<std::byte> sent(std::min<std::uint64_t>(piece, bytes()));
        std::vector<std::byte> seen(sent.size());
        for (std::uint64_t done = 0; done < bytes(); done += piece) {
            const std::size_t n = std::min<std::uint64_t>(piece, bytes() - done);
            read_at(file_.fd(), std::span(sent).first(n), done);
            fetch(done, std::span(seen).first(n));
            if (!std::ranges::equal(std::span(sent).first(n), std::span(seen).first(n)))
                throw std::runtime_error(
                    fmt::format("{}: bytes of a file of {} arrived wrong", name, bytes()));
        }
    }

    Kind kind_;
    SampleFile file_;
    SampleFile copy_;  // what is received
    Processors processors_;
};

/// What all turns of a contestant have moved and cost.
struct Tally {
    double bytes = 0;
    Busy busy;

    void add(const Busy& before, const Busy& after) {
        busy.here += after.here - before.here;
        busy.there += after.there - before.there;
    }
};

std::vector<double> turn(const Parcel& parcel, FileMover& mover, Shape shape, Tally& tally,
                         const Slice& slice) {
    for (std::uint64_t i = 0; i < warm_up_calls; i++)
        parcel.move(mover, std::min(parcel.bytes(), warm_up_bytes), shape);
    double bytes = 0;
    std::chrono::duration<double> time{};
    Stopwatch watch(slice);
    do {
        if (parcel.is_cold())
            parcel.drop();
        const Busy before = parcel.busy();
        const Clock::time_point begin = Clock::now();
        do {
            parcel.move(mover, parcel.bytes(), shape);
            bytes += static_cast<double>(parcel.bytes());
            watch.lap();
        } while (!parcel.is_cold() && !watch.over());
        time += Clock::now() - begin;
        tally.add(before, parcel.busy());
    } while (!watch.over());
    tally.bytes += bytes;
    return {bytes / 1e6 / time.count()};
}

class Files final : public Workload {
  public:
    constexpr Files(std::string_view name, std::string_view title, Kind kind)
        : name_(name), title_(title), kind_(kind) {}

    std::string_view name() const override { return name_; }
    std::string_view title() const override { return title_; }
    std::string_view unit() const override { return "MB/s"; }
    bool lower_is_better() const override { return false; }
    bool on_request() const override { return true; }
    std::vector<std::uint64_t> sizes(const Choice& choice) const override {
        return choice.file_sizes;
    }

    std::vector<Contestant> contestants(Field& field, std::uint64_t size) const override {
        const std::vector<Chosen> shapes = chosen_shapes(field.choice(), size);
        // One part at a time, for ways that cannot overlap parts.
        std::vector<Chosen> serial;
        for (const Chosen& chosen : shapes) {
            if (std::ranges::find(serial, chosen.shape.pages,
                                  [](const Chosen& c) { return c.shape.pages; }) == serial.end())
                serial.push_back({{1, chosen.named.pages}, {1, chosen.shape.pages}});
        }
        const auto parcel = std::make_shared<Parcel>(kind_, field, size);
        Target target = field.target();
        target.bytes = size;
        for (const Chosen& chosen : shapes) {
            target.local = std::max(target.local, chosen.shape.bytes());
            target.window = std::max(target.window, chosen.shape.pipes);
        }

        std::vector<Contestant> result;
        auto add = [&](const std::string& arm, const std::string& way,
                       const std::vector<Chosen>& of, const std::shared_ptr<FileMover>& mover) {
            parcel->verify(*mover, way, of.back().shape);
            for (const Chosen& chosen : of)
                result.push_back(contestant(arm, way, chosen, parcel, mover));
        };
        for (const std::string& arm : field.arms()) {
            if (arm == "lite") {
                add(arm, arm, shapes, make_lite_file_mover(target));
                add(arm, "read-write", serial, copying(arm, target));
            } else if (arm == "verbs") {
                // A busy loop over the completion queue would use up a processor.
                add(arm, "static", shapes, copying("verbs-events", target));
                if (kind_ != Kind::receive)
                    add(arm, "register", shapes, make_registering_mover(target));
            } else if (arm == "tcp") {
                add(arm, arm, {serial.back()}, make_tcp_file_mover(target));
            }
        }
        return result;
    }

  private:
    static std::shared_ptr<FileMover> copying(std::string_view arm, const Target& target) {
        return std::make_shared<CopyingMover>(make_transport(arm, target));
    }

    static Contestant contestant(const std::string& arm, const std::string& way,
                                 const Chosen& chosen, const std::shared_ptr<Parcel>& parcel,
                                 const std::shared_ptr<FileMover>& mover) {
        const Shape shape = chosen.shape;
        const auto tally = std::make_shared<Tally>();
        Contestant contestant{
            arm, fmt::format("{} {}x{}", way, chosen.named.pipes, chosen.named.pages),
            chosen.named.pipes,
            [=](const Slice& slice) { return turn(*parcel, *mover, shape, *tally, slice); }};
        contestant.facts = [=] {
            std::map<std::string, double> facts{{"cpu_here", tally->busy.here / tally->bytes},
                                                {"held", static_cast<double>(mover->held(shape))}};
            if (parcel->knows_both())
                facts["cpu_there"] = tally->busy.there / tally->bytes;
            return facts;
        };
        return contestant;
    }

    std::string_view name_;
    std::string_view title_;
    Kind kind_;
};

const Files file_warm(
    "file",
    "A file from the page cache to memory of the other machine: so many parts at a "
    "time, of so many pages",
    Kind::send);
const Files file_cold("file-cold", "Sending a file that is not in the page cache, from the disk",
                      Kind::send_cold);
const Files file_receive("file-receive",
                         "Memory of the other machine to a file, which is in the page cache",
                         Kind::receive);

}  // namespace

std::vector<const Workload*> file_workloads() { return {&file_warm, &file_cold, &file_receive}; }

}  // namespace perf
