// SPDX-License-Identifier: MIT
#include "workloads/restored.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include "catch.hpp"

using namespace perf;

namespace {

/// A file to which a command appends values. It refuses a number, with this number as exit status.
class Log {
  public:
    Log() {
        char name[] = "/tmp/restored-XXXXXX";
        close(mkstemp(name));
        file_ = name;
    }
    ~Log() { std::filesystem::remove(file_); }

    std::string command() const {
        return "case $value in [0-9]*) (exit $value) ;; *) echo $value >>" + file_ + " ;; esac";
    }
    const std::string& path() const { return file_; }
    std::string text() const {
        std::ostringstream text;
        text << std::ifstream(file_).rdbuf();
        return text.str();
    }

  private:
    std::string file_;
};

}  // namespace

TEST_CASE("what was found is restored after the last change") {
    const Log log;
    {
        Restored setting("found", log.command());
        CHECK(setting.set("found"));
        CHECK(log.text().empty());
        CHECK(setting.set("one"));
        CHECK(setting.set("one"));
        CHECK(setting.set("two"));
        CHECK(log.text() == "one\ntwo\n");
    }
    CHECK(log.text() == "one\ntwo\nfound\n");
}

TEST_CASE("a change that fails changes nothing") {
    const Log log;
    {
        Restored setting("found", log.command());
        CHECK_FALSE(setting.set("1"));
        // Numbers of several digits are refused, too.
        CHECK_FALSE(setting.set("127"));
        CHECK_FALSE(setting.set("100"));
    }
    CHECK(log.text().empty());
    {
        Restored setting("found", log.command());
        CHECK_FALSE(setting.set("127"));
        CHECK(setting.set("one"));
        CHECK_FALSE(setting.set("2"));
    }
    CHECK(log.text() == "one\nfound\n");
    {
        Restored setting("found", log.command());
        CHECK(setting.set("two"));
        CHECK(setting.set("found"));
    }
    CHECK(log.text() == "one\nfound\ntwo\nfound\n");
}

TEST_CASE("a value is restored also if its owner is killed while it is being changed") {
    const Log log;
    const std::string gate = log.path() + ".gate";
    REQUIRE(mkfifo(gate.c_str(), 0600) == 0);
    // The shell inherits its write end, so reading it ends when the shell has done everything.
    std::array<int, 2> ended{};
    REQUIRE(pipe(ended.data()) == 0);
    const pid_t owner = fork();
    if (!owner) {
        Restored setting("found", "[ $value = found ] || cat " + gate + "; " + log.command());
        setting.set("one");
        _exit(0);
    }
    close(ended[1]);
    // Can be opened when the change waits for it.
    const int let = open(gate.c_str(), O_WRONLY);
    REQUIRE(let >= 0);
    kill(owner, SIGKILL);
    REQUIRE(waitpid(owner, nullptr, 0) == owner);
    close(let);
    char byte = 0;
    CHECK(read(ended[0], &byte, 1) == 0);
    close(ended[0]);
    std::filesystem::remove(gate);
    CHECK(log.text() == "one\nfound\n");
}
