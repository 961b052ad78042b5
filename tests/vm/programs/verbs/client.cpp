// SPDX-License-Identifier: MIT
// The end that reads, writes and sends, and knows what must come of it.
#include "fabric.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>

namespace verbs_check {
namespace {

constexpr unsigned kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint64_t kWords = 4096;             // for atomics, at the beginning
constexpr std::uint64_t kOrderWord = 8192;         // what was written before each message
constexpr std::uint64_t kDataBegin = 16384 + 123;  // not aligned: for reads and writes
constexpr std::uint64_t kRegion = std::uint64_t{4} << 20;
constexpr std::uint32_t kTransferMax = 150000;

class Client {
  public:
    Client(const Options& options, Wire& wire, std::uint64_t seed)
        : is_soft_(options.is_soft),
          shift_(options.shift),
          fabric_(options),
          wire_(wire),
          random_(seed),
          local_(std::size_t{kSends} * kTransferMax),
          shadow_(kRegion) {
        mine_ = std::make_unique<Memory>(fabric_.pd(), local_.data(), local_.size(),
                                         IBV_ACCESS_LOCAL_WRITE, shift_);
        reconnect();
    }

    void reconnect() {
        wire_.put(Request{Ask::reconnect, 0, 0, 0, 0});
        fabric_.connect(wire_);
        wire_.get<Answer>();
    }

    Answer ask(Ask what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
               unsigned access = 0) {
        wire_.put(Request{what, access, a, b, c});
        return wire_.get<Answer>();
    }

    void data(int rounds);
    void messages(int rounds);
    void errors();
    void overlaps();
    void changes();
    void large(std::uint64_t bytes);
    void fill(std::uint64_t bytes);
    void first_use(int rounds);
    void touch();
    void finish() {
        ask(Ask::done);
        mine_.reset();
    }

  private:
    // A work request in flight, and what it must bring.
    struct Pending {
        std::uint64_t id;
        bool is_signaled;
        ibv_wc_opcode opcode;
        std::uint64_t slot;
        std::vector<std::uint8_t> expected;  // of a read, in the slot
    };

    std::uint64_t pick(std::uint64_t n) { return random_() % n; }
    std::uint8_t* slot(std::uint64_t n) { return local_.data() + n * kTransferMax; }
    void add_operation(std::vector<ibv_send_wr>& list, bool is_signaled);
    void settle(std::size_t left);
    // The completion of a single work request with no other in flight.
    ibv_wc_status outcome(ibv_send_wr wr);
    ibv_send_wr make(ibv_wr_opcode opcode, std::uint64_t addr, std::uint32_t rkey,
                     std::uint32_t length);
    void expect_failure(const char* what, ibv_send_wr wr, ibv_wc_status status,
                        bool may_be_flushed = false);

    const bool is_soft_;
    const std::uint64_t shift_;
    Fabric fabric_;
    Wire& wire_;
    std::mt19937_64 random_;
    std::vector<std::uint8_t> local_;
    std::unique_ptr<Memory> mine_;
    std::vector<std::uint8_t> shadow_;  // what the server's memory must be
    Answer region_ = {};
    std::deque<Pending> pending_;
    std::uint64_t next_id_ = 0;
    std::uint64_t completed_ = 0, read_ = 0, written_ = 0;
    ibv_sge sges_[kSends][4] = {};
};

void Client::add_operation(std::vector<ibv_send_wr>& list, bool is_signaled) {
    const std::uint64_t id = next_id_++;
    const std::uint64_t number = id % kSends;
    std::uint8_t* at = slot(number);
    Pending p = {id, is_signaled, IBV_WC_RDMA_WRITE, number, {}};
    ibv_send_wr wr = {};
    wr.wr_id = id;
    // What follows a read without a fence may come before it, if it has to be sent again. Soft-RoCE
    // makes a fenced read or atomic that it has to send again wait for itself, for ever
    // (rxe_wqe_is_fenced()): there nothing is posted behind one.
    if (!is_soft_)
        wr.send_flags = IBV_SEND_FENCE;
    if (is_signaled)
        wr.send_flags |= IBV_SEND_SIGNALED;
    wr.sg_list = sges_[number];

    const std::uint64_t kind = pick(8);
    if (kind < 2) {  // atomics
        const std::uint64_t word = pick(kWords / 8) * 8;
        std::uint64_t old = 0;
        std::memcpy(&old, &shadow_[word], 8);
        wr.wr.atomic.remote_addr = region_.addr + word;
        wr.wr.atomic.rkey = region_.rkey;
        std::uint64_t fresh = old;
        if (kind == 0) {
            wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
            p.opcode = IBV_WC_FETCH_ADD;
            wr.wr.atomic.compare_add = random_();
            fresh = old + wr.wr.atomic.compare_add;
        } else {
            wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
            p.opcode = IBV_WC_COMP_SWAP;
            wr.wr.atomic.compare_add = pick(2) ? old : old + 1;
            wr.wr.atomic.swap = random_();
            if (wr.wr.atomic.compare_add == old)
                fresh = wr.wr.atomic.swap;
        }
        std::memcpy(&shadow_[word], &fresh, 8);
        p.expected.resize(8);
        std::memcpy(p.expected.data(), &old, 8);
        sges_[number][0] = mine_->sge(number * kTransferMax, 8);
        wr.num_sge = 1;
    } else {
        const auto length = static_cast<std::uint32_t>(kind == 7   ? 1 + pick(kTransferMax)
                                                       : kind == 6 ? 1 + pick(kInline)
                                                                   : 1 + pick(6000));
        const std::uint64_t offset = kDataBegin + pick(kRegion - kDataBegin - length);
        wr.wr.rdma.remote_addr = region_.addr + offset;
        wr.wr.rdma.rkey = region_.rkey;
        const bool is_read = kind < 5 && pick(2);
        const int parts = length > 4 ? 1 + static_cast<int>(pick(4)) : 1;
        std::uint32_t done = 0;
        for (int i = 0; i < parts; i++) {
            const std::uint32_t n = i + 1 == parts ? length - done : length / 5;
            const std::uint64_t from = number * kTransferMax + done;
            sges_[number][i] = kind == 6 ? mine_->sge_of_process(from, n) : mine_->sge(from, n);
            done += n;
        }
        wr.num_sge = parts;
        if (is_read) {
            wr.opcode = IBV_WR_RDMA_READ;
            p.opcode = IBV_WC_RDMA_READ;
            p.expected.assign(&shadow_[offset], &shadow_[offset] + length);
            std::memset(at, 0x5a, length);
            read_ += length;
        } else {
            wr.opcode = IBV_WR_RDMA_WRITE;
            for (std::uint32_t i = 0; i < length; i++)
                at[i] = pattern(id, i);
            std::memcpy(&shadow_[offset], at, length);
            if (kind == 6)
                wr.send_flags |= IBV_SEND_INLINE;
            written_ += length;
        }
    }
    list.push_back(wr);
    pending_.push_back(std::move(p));
}

// Takes completions until not more than so many work requests are in flight.
void Client::settle(std::size_t left) {
    while (pending_.size() > left) {
        const ibv_wc wc = fabric_.wait();
        check(wc.status == IBV_WC_SUCCESS,
              std::string("completion: ") + ibv_wc_status_str(wc.status));
        // Those before it that were not signaled are complete too.
        for (;;) {
            check(!pending_.empty(), "a completion too much");
            const Pending p = std::move(pending_.front());
            pending_.pop_front();
            check(std::equal(p.expected.begin(), p.expected.end(), slot(p.slot)),
                  "what was read, by " + std::to_string(p.id));
            if (!p.is_signaled)
                continue;
            check(wc.wr_id == p.id, "completion of " + std::to_string(wc.wr_id) + " instead of " +
                                        std::to_string(p.id));
            check(wc.opcode == p.opcode, "opcode");
            check(wc.qp_num == fabric_.qp()->qp_num, "QP");
            completed_++;
            break;
        }
    }
}

// Random operations in lists; all bytes, and the order of completions, are checked.
void Client::data(int rounds) {
    region_ = ask(Ask::region, 0, kRegion, 0, kAll);
    for (int i = 0; i < rounds; i++) {
        const std::size_t n = 1 + pick(12);
        settle(kSends - n);
        std::vector<ibv_send_wr> list;
        for (std::size_t k = 0; k < n; k++) {
            add_operation(list, k + 1 == n || pick(3));
            if (is_soft_ && !pending_.back().expected.empty())
                break;
        }
        list.back().send_flags |= IBV_SEND_SIGNALED;
        pending_.back().is_signaled = true;
        check(!fabric_.post(list), "post");
        if (is_soft_)
            settle(0);
    }
    settle(0);
    check(fabric_.is_quiet(), "completions that nobody asked for");
    const Answer answer = ask(Ask::digest, 0, kRegion);
    check(answer.value == digest(shadow_.data(), shadow_.size()),
          "the server's memory is not what it must be");
    ask(Ask::free_region, region_.id);
    std::printf("data: %llu operations, %llu completions, read %llu, written %llu bytes\n",
                static_cast<unsigned long long>(next_id_),
                static_cast<unsigned long long>(completed_), static_cast<unsigned long long>(read_),
                static_cast<unsigned long long>(written_));
}

// Messages with and without immediate, and writes with immediate, each after a write of its number.
void Client::messages(int rounds) {
    region_ = ask(Ask::region, 0, kRegion, 0, kAll);
    ask(Ask::receive, kReceives / 2);
    std::uint64_t number = 0;
    for (int i = 0; i < rounds; i++) {
        // More than there are receives at times: the rest waits for the server.
        const std::uint64_t n = 1 + pick(kSends / 2);
        std::vector<ibv_send_wr> list;
        for (std::uint64_t k = 0; k < n; k++) {
            const std::uint64_t m = number + k;
            ibv_send_wr word = {};
            word.wr_id = 2 * m;
            word.opcode = IBV_WR_RDMA_WRITE;
            word.send_flags = IBV_SEND_INLINE;
            std::memcpy(slot(2 * k), &m, 8);
            sges_[2 * k][0] = mine_->sge_of_process(2 * k * kTransferMax, 8);
            word.sg_list = sges_[2 * k];
            word.num_sge = 1;
            word.wr.rdma.remote_addr = region_.addr + kOrderWord;
            word.wr.rdma.rkey = region_.rkey;

            ibv_send_wr message = {};
            const auto length = static_cast<std::uint32_t>(1 + m * 37 % kMessageMax);
            std::uint8_t* at = slot(2 * k + 1);
            for (std::uint32_t b = 0; b < length; b++)
                at[b] = pattern(m, b);
            sges_[2 * k + 1][0] = mine_->sge((2 * k + 1) * kTransferMax, length);
            message.wr_id = 2 * m + 1;
            message.sg_list = sges_[2 * k + 1];
            message.num_sge = 1;
            if (m % 5 == 0 || k + 1 == n)
                message.send_flags = IBV_SEND_SIGNALED;
            message.imm_data = htonl(static_cast<std::uint32_t>(m));
            message.opcode = m % 3 == 0   ? IBV_WR_SEND
                             : m % 3 == 1 ? IBV_WR_SEND_WITH_IMM
                                          : IBV_WR_RDMA_WRITE_WITH_IMM;
            if (m % 3 == 2) {
                message.wr.rdma.remote_addr = region_.addr + kDataBegin;
                message.wr.rdma.rkey = region_.rkey;
            }
            list.push_back(word);
            list.push_back(message);
        }
        check(!fabric_.post(list), "post");
        // The server begins to post more receives; what fails here it would wait for.
        wire_.put(Request{Ask::expect, 0, n, number, kOrderWord});
        for (std::uint64_t k = 0; k < n; k++) {
            const std::uint64_t m = number + k;
            if (!(m % 5 == 0 || k + 1 == n))
                continue;
            const ibv_wc wc = fabric_.wait();
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            check(wc.wr_id == 2 * m + 1, "completions of messages out of order");
            check(wc.opcode == (m % 3 == 2 ? IBV_WC_RDMA_WRITE : IBV_WC_SEND), "opcode");
        }
        wire_.get<Answer>();
        number += n;
    }
    check(fabric_.is_quiet(), "completions that nobody asked for");
    ask(Ask::free_region, region_.id);
    std::printf("messages: %llu\n", static_cast<unsigned long long>(number));
}

ibv_send_wr Client::make(ibv_wr_opcode opcode, std::uint64_t addr, std::uint32_t rkey,
                         std::uint32_t length) {
    ibv_send_wr wr = {};
    wr.wr_id = 1000;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = sges_[0];
    wr.num_sge = 1;
    sges_[0][0] = mine_->sge(0, length);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    return wr;
}

ibv_wc_status Client::outcome(ibv_send_wr wr) {
    std::vector<ibv_send_wr> list = {wr};
    check(!fabric_.post(list), "post");
    return fabric_.wait().status;
}

// The work request fails; two behind it, and one posted later, are flushed. Then a new connection
// works. @may_be_flushed: so may the first be: Soft-RoCE of 6.12 loses the status of a local error
// when its thread that completes is quicker than the one that sends.
void Client::expect_failure(const char* what, ibv_send_wr wr, ibv_wc_status status,
                            bool may_be_flushed) {
    ibv_sge sge = *wr.sg_list;  // make() has one place for all
    wr.sg_list = &sge;
    const ibv_send_wr good = make(IBV_WR_RDMA_WRITE, region_.addr + kDataBegin, region_.rkey, 8);
    std::vector<ibv_send_wr> list = {wr, good, good};
    list[0].wr_id = 1;
    list[1].wr_id = 2;
    list[2].wr_id = 3;
    list[2].send_flags = 0;  // flushed with a completion all the same
    check(!fabric_.post(list), what);
    for (std::uint64_t id = 1; id <= 3; id++) {
        const ibv_wc wc = fabric_.wait();
        check(wc.wr_id == id, std::string(what) + ": order");
        check(wc.status == (id == 1 ? status : IBV_WC_WR_FLUSH_ERR) ||
                  (may_be_flushed && wc.status == IBV_WC_WR_FLUSH_ERR),
              std::string(what) + ": " + ibv_wc_status_str(wc.status));
    }
    check(outcome(good) == IBV_WC_WR_FLUSH_ERR, std::string(what) + ": posted later");
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    check(!ibv_query_qp(fabric_.qp(), &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR,
          std::string(what) + ": the QP's state");
    check(fabric_.is_quiet(), std::string(what) + ": completions that nobody asked for");
    reconnect();
    check(outcome(make(IBV_WR_RDMA_WRITE, region_.addr + kDataBegin, region_.rkey, 8)) ==
              IBV_WC_SUCCESS,
          std::string(what) + ": connected again");
    std::printf("%s: %s\n", what, ibv_wc_status_str(status));
}

void Client::errors() {
    region_ = ask(Ask::region, 0, kRegion, 0, kAll);
    const Answer readable =
        ask(Ask::region, kRegion, 65536, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    const Answer writable = ask(Ask::region, kRegion + 65536, 65536, 0,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    const Answer odd = ask(Ask::region, kRegion + 131072 + 100, 1000, 0, kAll);
    const Answer gone = ask(Ask::region, kRegion + 262144, 65536, 0, kAll);
    check(outcome(make(IBV_WR_RDMA_WRITE, gone.addr, gone.rkey, 64)) == IBV_WC_SUCCESS, "before");
    ask(Ask::free_region, gone.id);

    const ibv_wc_status no = IBV_WC_REM_ACCESS_ERR;
    expect_failure("write with a wrong key",
                   make(IBV_WR_RDMA_WRITE, region_.addr, region_.rkey ^ 0x1500, 64), no);
    expect_failure("read with a wrong key",
                   make(IBV_WR_RDMA_READ, region_.addr, region_.rkey ^ 0x1500, 64), no);
    expect_failure("write beyond the end",
                   make(IBV_WR_RDMA_WRITE, region_.addr + kRegion - 8, region_.rkey, 9), no);
    expect_failure("write before the beginning", make(IBV_WR_RDMA_WRITE, odd.addr - 1, odd.rkey, 9),
                   no);
    expect_failure("read beyond the end, in the same page",
                   make(IBV_WR_RDMA_READ, odd.addr + 999, odd.rkey, 2), no);
    expect_failure("write where only reading is allowed",
                   make(IBV_WR_RDMA_WRITE, readable.addr, readable.rkey, 8), no);
    expect_failure("read where only writing is allowed",
                   make(IBV_WR_RDMA_READ, writable.addr, writable.rkey, 8), no);
    expect_failure("atomic where only writing is allowed",
                   make(IBV_WR_ATOMIC_FETCH_AND_ADD, writable.addr, writable.rkey, 8), no);
    expect_failure("write to what was deregistered",
                   make(IBV_WR_RDMA_WRITE, gone.addr, gone.rkey, 8), no);
    ibv_send_wr wr = make(IBV_WR_RDMA_WRITE, region_.addr, region_.rkey, 64);
    ibv_sge wrong = mine_->sge(0, 64);
    wrong.lkey ^= 0x1500;
    wr.sg_list = &wrong;
    expect_failure("write with a wrong local key", wr,
                   is_soft_ ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR, is_soft_);
    wrong = mine_->sge(local_.size() - 8, 9);
    expect_failure("write from beyond the local end", wr, IBV_WC_LOC_PROT_ERR, is_soft_);
    if (shift_) {
        wrong = mine_->sge_of_process(0, 64);
        expect_failure("write from an address in the process", wr, IBV_WC_LOC_PROT_ERR, is_soft_);
        expect_failure("write to an address in the peer's process",
                       make(IBV_WR_RDMA_WRITE, region_.addr - shift_, region_.rkey, 64), no);
    }
    for (const Answer& a : {region_, readable, writable, odd})
        ask(Ask::free_region, a.id);
    for (void* at : {static_cast<void*>(nullptr), static_cast<void*>(local_.data())})
        check(!ibv_reg_mr(fabric_.pd(), at, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE),
              "more than all addresses are registered");
}

// The same memory in several registrations, one at other addresses; any may go first.
void Client::overlaps() {
    const Answer whole = ask(Ask::region, 0, kRegion, 0, kAll);
    const Answer again = ask(Ask::region, 0, kRegion, std::uint64_t{1} << 48, kAll);
    const Answer part = ask(Ask::region, 5000, 3000, 0, kAll);
    const Answer beyond = ask(Ask::region, kRegion - 10000, 300000, 0, kAll);
    region_ = whole;
    std::memset(slot(0), 1, 200000);
    check(outcome(make(IBV_WR_RDMA_WRITE, beyond.addr, beyond.rkey, 150000)) == IBV_WC_SUCCESS,
          "beyond");
    ask(Ask::free_region, whole.id);
    std::memset(slot(0), 2, 3000);
    check(outcome(make(IBV_WR_RDMA_WRITE, part.addr, part.rkey, 3000)) == IBV_WC_SUCCESS, "part");
    check(outcome(make(IBV_WR_RDMA_READ, again.addr + 4999, again.rkey, 3002)) == IBV_WC_SUCCESS,
          "again");
    check(slot(0)[0] != 2 && slot(0)[1] == 2 && slot(0)[3000] == 2 && slot(0)[3001] != 2,
          "what was read");
    ask(Ask::free_region, again.id);
    check(outcome(make(IBV_WR_RDMA_READ, beyond.addr + 9999, beyond.rkey, 100)) == IBV_WC_SUCCESS,
          "beyond, still");
    check(std::all_of(slot(0), slot(0) + 100, [](std::uint8_t b) { return b == 1; }), "its bytes");
    ask(Ask::free_region, part.id);
    ask(Ask::free_region, beyond.id);
    std::printf("overlaps\n");
}

// Registrations that are changed: the old key ends, the new one is good for what it stands for.
void Client::changes() {
    // Pages of which there is no other registration.
    constexpr std::uint64_t begin = kRegion + 5000;
    constexpr std::uint32_t length = 20000, moved = 12000;
    constexpr unsigned readable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    const auto change = [this](const Answer& old, int flags, unsigned access = 0,
                               std::uint64_t offset = 0, std::uint64_t bytes = 0) {
        const std::uint64_t what = static_cast<std::uint64_t>(flags) << 32 | old.id;
        return ask(Ask::change_region, what, offset, bytes, access);
    };
    const auto is_good = [this](ibv_wr_opcode opcode, const Answer& at, std::uint32_t bytes) {
        check(outcome(make(opcode, at.addr, at.rkey, bytes)) == IBV_WC_SUCCESS, "the new key");
    };
    region_ = ask(Ask::region, 0, kRegion, 0, kAll);
    const Answer first = ask(Ask::region, begin, length, 0, kAll);
    std::memset(slot(0), 1, length);
    is_good(IBV_WR_RDMA_WRITE, first, length);
    check(!ask(Ask::advise, first.id).value, "advice");

    for (const Answer& same : {change(first, 0), change(first, 1 << 10, readable),
                               change(first, IBV_REREG_MR_CHANGE_TRANSLATION, 0, begin, 0)})
        check(static_cast<int>(same.value) == IBV_REREG_MR_ERR_INPUT && same.rkey == first.rkey,
              "a wrong change");
    is_good(IBV_WR_RDMA_WRITE, first, length);

    const Answer second = change(first, IBV_REREG_MR_CHANGE_ACCESS, readable);
    check(!second.value && second.rkey != first.rkey && second.addr == first.addr, "rights");
    is_good(IBV_WR_RDMA_READ, second, length);
    const auto expect_refused = [this](const char* what, ibv_wr_opcode opcode, const Answer& at) {
        expect_failure(what, make(opcode, at.addr, at.rkey, 8), IBV_WC_REM_ACCESS_ERR);
    };
    expect_refused("write with the key of other rights", IBV_WR_RDMA_WRITE, first);
    expect_refused("write where it is no longer allowed", IBV_WR_RDMA_WRITE, second);

    // Overlapping what it was.
    const Answer third =
        change(second, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, kAll,
               begin + moved, length);
    check(!third.value && third.rkey != second.rkey && third.addr == second.addr + moved - shift_,
          "moved");
    std::memset(slot(0), 2, length);
    is_good(IBV_WR_RDMA_WRITE, third, length);
    std::vector<std::uint8_t> written(moved, 1);
    written.resize(moved + length, 2);
    check(ask(Ask::digest, begin, written.size()).value == digest(written.data(), written.size()),
          "what was written with the keys");
    expect_refused("read with the key of other memory", IBV_WR_RDMA_READ, second);
    Answer before = third;
    before.addr--;
    expect_refused("read before the new beginning", IBV_WR_RDMA_READ, before);

    const Answer fourth = change(third, IBV_REREG_MR_CHANGE_PD);
    check(!fourth.value && fourth.rkey != third.rkey && fourth.addr == third.addr, "another PD");
    is_good(IBV_WR_RDMA_READ, fourth, length);
    expect_refused("read with the key of another PD", IBV_WR_RDMA_READ, third);
    ask(Ask::free_region, fourth.id);
    expect_refused("read with the key of what was changed, and then freed", IBV_WR_RDMA_READ,
                   fourth);

    // Of local memory the QP's own PD is needed.
    ibv_pd* other = ibv_alloc_pd(fabric_.pd()->context);
    std::vector<std::uint8_t> bytes(100);
    Memory local(fabric_.pd(), bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE, shift_);
    ibv_send_wr wr = make(IBV_WR_RDMA_WRITE, region_.addr, region_.rkey, 8);
    ibv_sge sge = local.sge(0, 8);
    wr.sg_list = &sge;
    check(outcome(wr) == IBV_WC_SUCCESS, "local");
    check(other && !ibv_rereg_mr(local.mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), "PD");
    expect_failure("write with an old local key", wr, IBV_WC_LOC_PROT_ERR);
    sge = local.sge(0, 8);
    expect_failure("write with a local key of another PD", wr, IBV_WC_LOC_PROT_ERR);
    check(!ibv_rereg_mr(local.mr, IBV_REREG_MR_CHANGE_PD, fabric_.pd(), nullptr, 0, 0), "own PD");
    sge = local.sge(0, 8);
    check(outcome(wr) == IBV_WC_SUCCESS, "local again");
    check(!ibv_dealloc_pd(other), "the other PD");
    ask(Ask::free_region, region_.id);
    std::printf("changes\n");
}

// A region of many bytes, of which some are used.
void Client::large(std::uint64_t bytes) {
    region_ = ask(Ask::region, 0, bytes, 0, kAll);
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < 200; i++) {
        places.push_back(pick(bytes / 8) * 8);
        std::memcpy(slot(0), &places.back(), 8);
        check(outcome(make(IBV_WR_RDMA_WRITE, region_.addr + places.back(), region_.rkey, 8)) ==
                  IBV_WC_SUCCESS,
              "write");
    }
    for (const std::uint64_t place : places) {
        check(outcome(make(IBV_WR_RDMA_READ, region_.addr + place, region_.rkey, 8)) ==
                  IBV_WC_SUCCESS,
              "read");
        check(!std::memcmp(slot(0), &place, 8), "what was read");
    }
    ask(Ask::free_region, region_.id);
    std::printf("large: %llu bytes\n", static_cast<unsigned long long>(bytes));
}

// Writes all bytes of a region, in words that say where they are, and reads a fourth of them, and
// the server some, at random places.
void Client::fill(std::uint64_t bytes) {
    constexpr std::uint64_t step = 131072;
    region_ = ask(Ask::region, 0, bytes, 0, kAll);
    const auto number = [](std::uint64_t at) { return (at + 1) * 0x9e3779b97f4a7c15; };
    for (std::uint64_t at = 0; at < bytes; at += step) {
        for (std::uint64_t i = 0; i < step; i += 8) {
            const std::uint64_t word = number(at + i);
            std::memcpy(slot(0) + i, &word, 8);
        }
        check(outcome(make(IBV_WR_RDMA_WRITE, region_.addr + at, region_.rkey, step)) ==
                  IBV_WC_SUCCESS,
              "write");
    }
    for (std::uint64_t n = bytes / step / 4; n > 0; n--) {
        const std::uint64_t at = pick(bytes / step) * step;
        check(outcome(make(IBV_WR_RDMA_READ, region_.addr + at, region_.rkey, step)) ==
                  IBV_WC_SUCCESS,
              "read");
        for (std::uint64_t i = 0; i < step; i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, slot(0) + i, 8);
            check(word == number(at + i), "what was read at " + std::to_string(at + i));
        }
    }
    for (int i = 0; i < 100; i++) {
        const std::uint64_t at = pick(bytes / 4096) * 4096;
        std::uint8_t page[4096];
        for (std::uint64_t k = 0; k < sizeof(page); k += 8) {
            const std::uint64_t word = number(at + k);
            std::memcpy(page + k, &word, 8);
        }
        check(ask(Ask::digest, at, sizeof(page)).value == digest(page, sizeof(page)),
              "what the server sees at " + std::to_string(at));
    }
    ask(Ask::free_region, region_.id);
    std::printf("fill: %llu bytes\n", static_cast<unsigned long long>(bytes));
}

// What the first write to a new registration takes, and the next one: medians.
void Client::first_use(int rounds) {
    std::vector<double> times[2];
    for (int i = 0; i < rounds; i++) {
        region_ = ask(Ask::region, 0, kRegion, 0, kAll);
        for (std::vector<double>& one : times) {
            const double begun = microseconds();
            check(
                outcome(make(IBV_WR_RDMA_WRITE, region_.addr, region_.rkey, 64)) == IBV_WC_SUCCESS,
                "write");
            one.push_back(microseconds() - begun);
        }
        ask(Ask::free_region, region_.id);
    }
    std::printf("first write %.1f us, second %.1f us\n", median(times[0]), median(times[1]));
}

void Client::touch() {
    region_ = ask(Ask::region, 0, kRegion, 0, kAll);
    check(outcome(make(IBV_WR_RDMA_WRITE, region_.addr, region_.rkey, 64)) == IBV_WC_SUCCESS,
          "write");
}

}  // namespace

int use(const Options& options, const char* address, int port, std::uint64_t seed, int rounds,
        const std::string& what) {
    Wire wire = Wire::connect(address, port);
    wire.get<char>();
    Client client(options, wire, seed);
    if (what == "successor") {
        client.touch();
        client.finish();
        std::getchar();
        return use(options, address, port, seed, rounds, "touch");
    }
    if (what == "touch")
        client.touch();
    if (what == "all" || what == "data")
        client.data(rounds);
    if (what == "all" || what == "messages")
        client.messages(rounds / 4);
    if (what == "all" || what == "errors")
        client.errors();
    if (what == "all" || what == "overlaps")
        client.overlaps();
    if (what == "changes")
        client.changes();
    if (what == "large")
        client.large(static_cast<std::uint64_t>(rounds) << 20);
    if (what == "fill")
        client.fill(static_cast<std::uint64_t>(rounds) << 20);
    if (what == "first")
        client.first_use(rounds);
    client.finish();
    std::printf("good\n");
    return 0;
}

}  // namespace verbs_check
