// SPDX-License-Identifier: MIT
#include "qos_mode.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include "catch.hpp"

using namespace perf;

namespace {

// The tests have one thread. NOLINTBEGIN(concurrency-mt-unsafe)

/// A litectl that records the modes that are set, and refuses sw-pri.
class FakeLitectl {
  public:
    explicit FakeLitectl(const std::string& shown) {
        char name[] = "/tmp/qos-mode-XXXXXX";
        directory_ = mkdtemp(name);
        const auto program = directory_ / "litectl";
        std::ofstream(program) << "#!/bin/sh\n"
                                  "case \"$*\" in\n"
                                  "'qos show -j -i 3') echo '"
                               << shown
                               << "' ;;\n"
                                  "'qos set -i 3 --mode sw-pri') exit 1 ;;\n"
                                  "'qos set -i 3 --mode '*) echo \"$6\" >>"
                               << log().string()
                               << " ;;\n"
                                  "*) exit 2 ;;\n"
                                  "esac\n";
        std::filesystem::permissions(program, std::filesystem::perms::owner_all);
        const std::string path = directory_.string() + ":" + old_path_;
        setenv("PATH", path.c_str(), 1);
    }
    ~FakeLitectl() {
        setenv("PATH", old_path_.c_str(), 1);
        std::filesystem::remove_all(directory_);
    }

    std::string modes() const {
        std::ostringstream text;
        text << std::ifstream(log()).rdbuf();
        return text.str();
    }

  private:
    std::filesystem::path log() const { return directory_ / "log"; }

    std::string old_path_ = std::getenv("PATH");
    std::filesystem::path directory_;
};

// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

TEST_CASE("the scheduling mode is set, and the one that was found restored") {
    const FakeLitectl litectl(R"({"mode": "hw-sep", "rules": []})");
    {
        QosMode mode(3);
        mode.set("hw-sep");
        CHECK(litectl.modes().empty());
        mode.set("fair");
        mode.set("fair");
        CHECK(litectl.modes() == "fair\n");
        mode.set("none");
        CHECK_THROWS_WITH(mode.set("sw-pri"), Catch::Contains("sw-pri cannot be set"));
    }
    CHECK(litectl.modes() == "fair\nnone\nhw-sep\n");
}

TEST_CASE("a mode that was not changed is not restored") {
    const FakeLitectl litectl(R"({"mode": "none"})");
    QosMode(3).set("none");
    CHECK(litectl.modes().empty());
}

TEST_CASE("the mode is restored after a process that was killed") {
    const FakeLitectl litectl(R"({"mode": "hw-sep"})");
    const pid_t child = fork();
    if (!child) {
        QosMode mode(3);
        mode.set("fair");
        kill(getpid(), SIGKILL);
    }
    REQUIRE(waitpid(child, nullptr, 0) == child);
    for (int i = 0; i < 10000 && litectl.modes() != "fair\nhw-sep\n"; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(litectl.modes() == "fair\nhw-sep\n");
}

TEST_CASE("without litectl there is an error") {
    const FakeLitectl litectl("no object");
    CHECK_THROWS_AS(QosMode(3), std::runtime_error);
}
