// SPDX-License-Identifier: MIT
//
// checkpoint: a computation that saves its state to another node's memory, and from there to a
// file, while it goes on. When it is started again, it continues from the last checkpoint.
//
//    checkpoint NAME NODE MEGABYTES STEPS EVERY [FILE]
//
// NAME: of the LMR, on node NODE. MEGABYTES: size of the state. EVERY: steps between checkpoints.
//
// The LMR has room for two checkpoints. The new one overwrites the older one, and becomes valid
// when it is complete, by a write of one word, so there is always one to go back to. fork(2) makes
// the snapshot: the child saves the memory as it was, while the parent computes.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lite/file.hpp>

namespace {

using words = std::vector<std::uint64_t>;

constexpr std::uint64_t page = 4096;

class file {
  public:
    file(const std::string& path, int flags) : m_fd(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        if (m_fd < 0)
            throw std::system_error(errno, std::generic_category(), path);
    }
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file() { ::close(m_fd); }
    int fd() const { return m_fd; }

  private:
    int m_fd;
};

// The LMR: a page with the number of the valid checkpoint (1 or 2; 0: none), then both of them,
// each a page with the step, and the state.
class checkpoints {
  public:
    checkpoints(lite::context& node, const std::string& name, std::uint32_t home,
                std::uint64_t size)
        : m_node(node), m_length(page + size), m_lmr(open(name, home)) {
        if (m_lmr.length() != page + 2 * m_length)
            throw std::runtime_error(name + " has states of another size");
    }

    // Returns the step of the valid checkpoint, and fills @state from it; 0: there is none.
    std::uint64_t restore(words& state) const {
        const auto valid = m_lmr.load<std::uint64_t>(0);
        if (!valid)
            return 0;
        m_lmr.read(place(valid) + page, state);
        return m_lmr.load<std::uint64_t>(place(valid));
    }

    void save(const words& state, std::uint64_t step) {
        const auto next = other();
        m_lmr.write(place(next) + page, state);
        complete(next, step);
    }

    // Replaces the file once the new one is complete.
    void to_file(const std::string& path) {
        {
            const file out(path + ".new", O_WRONLY | O_CREAT | O_TRUNC);
            if (lite::receive_file(m_node, m_lmr, place(m_lmr.load<std::uint64_t>(0)), out.fd(), 0,
                                   m_length) != m_length)
                throw std::runtime_error(path + ": not all could be written");
            if (::fdatasync(out.fd()))
                throw std::system_error(errno, std::generic_category(), path);
        }
        if (std::rename((path + ".new").c_str(), path.c_str()))
            throw std::system_error(errno, std::generic_category(), path);
    }

    void from_file(const std::string& path) {
        const file in(path, O_RDONLY);
        const auto next = other();
        if (::lseek(in.fd(), 0, SEEK_END) != static_cast<off_t>(m_length) ||
            lite::send_file(m_node, m_lmr, place(next), in.fd(), 0, m_length) != m_length)
            throw std::runtime_error(path + " is of another size");
        complete(next, m_lmr.load<std::uint64_t>(place(next)));
    }

  private:
    lite::region open(const std::string& name, std::uint32_t home) {
        try {
            return m_node.map(name);
        } catch (const lite::error& e) {
            if (e.code() != std::errc::no_such_file_or_directory)
                throw;
            return m_node.alloc({.name = name, .length = page + 2 * m_length, .nodes = {home}});
        }
    }

    std::uint64_t place(std::uint64_t number) const { return page + (number - 1) * m_length; }
    std::uint64_t other() const { return m_lmr.load<std::uint64_t>(0) == 1 ? 2 : 1; }

    // All nodes see these writes in this order, as each has returned before the next begins.
    void complete(std::uint64_t number, std::uint64_t step) {
        m_lmr.store(place(number), step);
        m_lmr.store(0, number);
    }

    lite::context& m_node;
    std::uint64_t m_length;
    lite::region m_lmr;
};

// Stands for a computation: each word depends on its neighbour and on the step.
void compute(words& state, std::uint64_t step) {
    std::uint64_t left = state.back();
    for (auto& word : state) {
        word = (word ^ left >> 7) * 6364136223846793005U + step;
        left = word;
    }
}

// Waits for the child that saves, if there is one. Returns false if it failed.
bool was_saved(pid_t& child) {
    int status = 0;
    const bool good = !child || (::waitpid(child, &status, 0) == child && !status);
    child = 0;
    return good;
}

pid_t save_behind(checkpoints& saved, const words& state, std::uint64_t step,
                  const std::string& path) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0)
        throw std::system_error(errno, std::generic_category(), "fork");
    if (child)
        return child;
    // A run that continues after a crash must not meet a child of this one that still saves.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
        ::_exit(1);
    try {
        saved.save(state, step);
        if (!path.empty())
            saved.to_file(path);
        std::cout << "saved step " << step << std::endl;
        ::_exit(0);
    } catch (const std::exception& e) {
        std::cerr << "checkpoint: " << e.what() << std::endl;
        ::_exit(1);
    }
}

// Returns the exit status: 1 if a checkpoint could not be saved, which does not stop the
// computation.
int run(std::span<char*> args) {
    const std::string path = args.size() > 6 ? args[6] : "";
    const auto number = [&](std::size_t i) { return std::strtoull(args[i], nullptr, 0); };
    const auto steps = number(4);
    const auto every = number(5);
    lite::context node;
    words state(number(3) * (1 << 20) / sizeof(std::uint64_t));
    if (!every || state.empty())
        throw std::runtime_error("MEGABYTES and EVERY must not be 0");
    checkpoints saved(node, args[1], static_cast<std::uint32_t>(number(2)),
                      state.size() * sizeof(std::uint64_t));
    auto step = saved.restore(state);
    if (!step && !path.empty() && ::access(path.c_str(), F_OK) == 0) {
        // The LMR is new: the other node has lost its memory.
        saved.from_file(path);
        step = saved.restore(state);
    }
    if (step)
        std::cout << "continued after step " << step << std::endl;
    else
        std::iota(state.begin(), state.end(), 1);

    pid_t child = 0;
    bool all_saved = true;
    while (step < steps) {
        compute(state, ++step);
        if (step % every)
            continue;
        all_saved &= was_saved(child);
        child = save_behind(saved, state, step, path);
    }
    all_saved &= was_saved(child);
    std::cout << "result " << std::hex << std::accumulate(state.begin(), state.end(), step)
              << std::endl;
    return all_saved ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        std::cerr << "usage: checkpoint NAME NODE MEGABYTES STEPS EVERY [FILE]\n";
        return 2;
    }
    try {
        return run(std::span(argv, argv + argc));
    } catch (const std::exception& e) {
        std::cerr << "checkpoint: " << e.what() << '\n';
        return 1;
    }
}
