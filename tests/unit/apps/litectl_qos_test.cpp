// SPDX-License-Identifier: MIT
//
// "litectl qos": what it asks the kernel, what it shows, and the file that keeps the rules.

#include "cgroup.hpp"
#include "litectl_machine.hpp"

#include "catch.hpp"

#include <nlohmann/json.hpp>

#include <uapi/lite.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

using nlohmann::json;
using namespace litectl_test;
using namespace std::string_literals;

namespace {

message fair() {
    message mode(LITE_CMD_QOS_GET);
    mode.put_u8(LITE_A_QOS_MODE, LITE_QOS_FAIR);
    mode.put_u8(LITE_A_TENANTS, LITE_QOS_BY_UID);
    return mode;
}

message rule_of(std::uint64_t cgroup) {
    message rule(LITE_CMD_QOS_GET);
    rule.put_u64(LITE_A_CGROUP, cgroup);
    rule.put_u32(LITE_A_WEIGHT, 300);
    rule.put_u8(LITE_A_CEILING, 4);
    return rule;
}

message rule_of_alice() {
    message rule(LITE_CMD_QOS_GET);
    rule.put_u32(LITE_A_UID, 1000);
    rule.put_u32(LITE_A_WEIGHT, 300);
    rule.put_u8(LITE_A_CEILING, 2);
    rule.put_u8(LITE_A_PRIORITY, LITE_PRIORITY(6));
    return rule;
}

// A hierarchy of control groups, with work.slice/db.
class hierarchy {
  public:
    hierarchy() {
        add("");
        add("work.slice");
        add("work.slice/db");
    }

    void add(const std::string& name) const {
        std::filesystem::create_directories(root / name);
        write_file((root / name / "cgroup.controllers").string(), "");
    }

    std::uint64_t number(const std::string& name) const {
        struct stat st {};
        REQUIRE(::stat((root / name).c_str(), &st) == 0);
        return st.st_ino;
    }

    // Another directory gets the name, as when a service starts again.
    void make_anew(const std::string& name) const {
        std::filesystem::rename(root / name, std::filesystem::path(m_place / "old"));
        add(name);
    }

  private:
    temporary_directory m_place;

  public:
    const std::filesystem::path root = m_place / "cgroup";
};

// "GROUP=WEIGHT " for each rule in the file.
std::string rules_in(const std::string& file) {
    std::string all;
    const auto said = json::parse(read_file(file));
    for (const auto& rule : said["rules"])
        all += rule["cgroup"].get<std::string>() + "=" + rule["weight"].dump() + " ";
    return all;
}

}  // namespace

TEST_CASE("litectl qos", "[litectl]") {
    machine litectl;
    const auto mode = fair();
    const auto rule = rule_of_alice();
    message class1(LITE_CMD_QOS_GET);
    class1.put_u8(LITE_A_CLASS, 1);
    class1.put_u64(LITE_A_QUEUED, 2);
    class1.put_u64(LITE_A_IN_FLIGHT, 3);
    class1.put_u64(LITE_A_SLICES, 100);
    class1.put_u64(LITE_A_BYTES, 6400);
    std::array<std::uint64_t, 24> waited{};
    waited[0] = 60;
    waited[5] = 40;
    class1.put_bytes(LITE_A_WAITED, std::as_bytes(std::span(waited)));
    message class2(LITE_CMD_QOS_GET);
    class2.put_u8(LITE_A_CLASS, 2);
    message tenant(LITE_CMD_QOS_GET);
    tenant.put_u32(LITE_A_TENANT, 1000);
    tenant.put_u64(LITE_A_SLICES, 7);
    litectl.kernel.answers = {mode, rule, class1, class2, tenant};
    CHECK(litectl({"qos", "show"}).out ==
          "mode: fair, by uid\n"
          "TENANT  WEIGHT  CEILING  DEFAULT\n"
          "  1000     300        2        6\n"
          "\n"
          "CLASS  QUEUED  IN-FLIGHT  SLICES  BYTES  P50-US  P99-US\n"
          "    1       2          3     100   6400       1      32\n"
          "\n"
          "TENANT  QUEUED  IN-FLIGHT  SLICES  BYTES  P50-US  P99-US\n"
          "  1000       0          0       7      0       0       0\n");
    CHECK(json::parse(litectl({"qos", "show", "-j"}).out)["classes"][0]["waited_p99_us"] == 32);
    CHECK(json::parse(litectl({"qos", "show", "-j"}).out)["rules"][0]["ceiling"] == 2);
    litectl.kernel.asked.clear();
    CHECK(litectl({"qos", "set", "-m", "sw-pri", "-u", "5", "-w", "7"}).status == 0);
    REQUIRE(litectl.kernel.asked.size() == 3);  // the last gets the rules, to keep them
    CHECK(litectl.kernel.asked[0].u8(LITE_A_QOS_MODE) == LITE_QOS_SW_PRI);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_UID) == 5U);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_WEIGHT) == 7U);
    CHECK(!litectl.kernel.asked[1].u8(LITE_A_CEILING));
    CHECK(litectl({"qos", "reset", "-u", "5"}).status == 0);
    CHECK(!litectl.kernel.asked[3].u32(LITE_A_WEIGHT));
    CHECK(litectl({"qos", "set"}).status != 0);
    CHECK(litectl({"qos", "set", "-w", "7"}).status != 0);
    CHECK(litectl({"qos", "set", "-u", "7"}).status != 0);
    CHECK(litectl({"qos", "set", "-m", "fast"}).status != 0);
    CHECK(litectl.kernel.asked.size() == 5);
}

TEST_CASE("litectl qos: rules outlive a node", "[litectl]") {
    machine litectl;
    const auto mode = fair();
    const auto rule = rule_of_alice();
    litectl.kernel.answers = {mode, rule};
    CHECK(litectl({"qos", "set", "-m", "fair", "-i", "3"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file + ".3"))["rules"][0]["weight"] == 300);
    CHECK(!std::filesystem::exists(litectl.world.qos_file));

    litectl.kernel.answers.clear();
    litectl.kernel.asked.clear();
    CHECK(litectl({"start", "--insecure", "-i", "3"}).status == 0);
    REQUIRE(litectl.kernel.asked.size() == 3);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_INDEX) == 3U);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_UID) == 1000U);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_WEIGHT) == 300U);
    CHECK(litectl.kernel.asked[1].u8(LITE_A_CEILING) == 2);
    CHECK(litectl.kernel.asked[1].u8(LITE_A_PRIORITY) == LITE_PRIORITY(6));
    CHECK(litectl.kernel.asked[2].u8(LITE_A_QOS_MODE) == LITE_QOS_FAIR);

    // In mode none the rule is kept until it is removed; then no file is left.
    CHECK(litectl({"qos", "set", "-m", "none", "-i", "3"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file + ".3"))["rules"][0]["weight"] == 300);
    CHECK(litectl({"qos", "reset", "-u", "1000", "-i", "3"}).status == 0);
    CHECK(!std::filesystem::exists(litectl.world.qos_file + ".3"));

    for (const auto* wrong :
         {"", "{", "[]", R"({"mode": "fair"})", R"({"mode": "fast", "rules": []})",
          R"({"mode": "none", "rules": [{"uid": -1}]})"}) {
        write_file(litectl.world.qos_file, wrong);
        const auto r = litectl({"start", "--insecure"});
        CHECK(r.status == 0);
        CHECK(r.err.find(litectl.world.qos_file + ": not all rules hold: ") != std::string::npos);
    }
    // One wrong rule keeps neither the others nor the mode from taking effect.
    litectl.kernel.asked.clear();
    write_file(
        litectl.world.qos_file,
        R"({"mode": "fair", "rules": [{"uid": 1, "weight": 256, "ceiling": 256, "default": 4},
                  {"uid": 2, "weight": 5, "ceiling": 3, "default": 4}]})");
    CHECK(!litectl({"start", "--insecure"}).err.empty());
    REQUIRE(litectl.kernel.asked.size() == 3);
    CHECK(litectl.kernel.asked[1].u32(LITE_A_UID) == 2U);
    CHECK(litectl.kernel.asked[2].u8(LITE_A_QOS_MODE) == LITE_QOS_FAIR);

    litectl.world.qos_file = litectl.devices / "missing/qos";
    litectl.kernel.answers = {mode, rule};
    const auto r = litectl({"qos", "set", "-m", "fair"});
    CHECK(r.status == 1);
    CHECK(r.err.find("it is lost when the node stops") != std::string::npos);
}

// Otherwise the next start would set a default, which holds beside any ceiling.
TEST_CASE("litectl qos: no default stays none", "[litectl]") {
    machine litectl;
    message rule(LITE_CMD_QOS_GET);
    rule.put_u32(LITE_A_UID, 1000);
    rule.put_u32(LITE_A_WEIGHT, 100);
    rule.put_u8(LITE_A_CEILING, 6);
    rule.put_u8(LITE_A_PRIORITY, LITE_PRIORITY_DEFAULT);
    litectl.kernel.answers = {fair(), rule};
    CHECK(litectl({"qos", "show"}).out.find("1000     100        6        -\n") !=
          std::string::npos);
    CHECK(litectl({"qos", "set", "-u", "1000", "-c", "6"}).status == 0);
    CHECK(!json::parse(read_file(litectl.world.qos_file))["rules"][0].contains("default"));

    litectl.kernel.answers.clear();
    litectl.kernel.asked.clear();
    CHECK(litectl({"start", "--insecure"}).status == 0);
    REQUIRE(litectl.kernel.asked.size() == 3);
    CHECK(litectl.kernel.asked[1].u8(LITE_A_CEILING) == 6);
    CHECK(!litectl.kernel.asked[1].u8(LITE_A_PRIORITY));
}

TEST_CASE("litectl qos: control groups", "[litectl]") {
    machine litectl;
    const temporary_directory place;
    const std::filesystem::path hierarchy = place / "cgroup";
    std::filesystem::create_directories(hierarchy / "work.slice/db");
    for (const auto* group : {"", "work.slice", "work.slice/db"})
        write_file((hierarchy / group / "cgroup.controllers").string(), "");
    litectl.world.cgroups = hierarchy;
    struct stat st {};
    REQUIRE(::stat((hierarchy / "work.slice/db").c_str(), &st) == 0);

    message mode(LITE_CMD_QOS_GET);
    mode.put_u8(LITE_A_QOS_MODE, LITE_QOS_FAIR);
    mode.put_u8(LITE_A_TENANTS, LITE_QOS_BY_CGROUP);
    message rule(LITE_CMD_QOS_GET);
    rule.put_u64(LITE_A_CGROUP, st.st_ino);
    rule.put_u32(LITE_A_WEIGHT, 300);
    rule.put_u8(LITE_A_CEILING, 4);
    message gone(LITE_CMD_QOS_GET);
    gone.put_u64(LITE_A_CGROUP, 999999999999);
    gone.put_u32(LITE_A_WEIGHT, 10);
    gone.put_u8(LITE_A_CEILING, 4);
    message tenant(LITE_CMD_QOS_GET);
    tenant.put_u64(LITE_A_TENANT_CGROUP, st.st_ino);
    tenant.put_u64(LITE_A_SLICES, 7);
    litectl.kernel.answers = {mode, rule, gone, tenant};
    CHECK(litectl({"qos", "show"}).out ==
          "mode: fair, by cgroup\n"
          "       TENANT  WEIGHT  CEILING  DEFAULT\n"
          "work.slice/db     300        4        -\n"
          "#999999999999      10        4        -\n"
          "\n"
          "\n"
          "       TENANT  QUEUED  IN-FLIGHT  SLICES  BYTES  P50-US  P99-US\n"
          "work.slice/db       0          0       7      0       0       0\n");

    litectl.kernel.asked.clear();
    CHECK(litectl({"qos", "set", "-t", "cgroup", "-g", "work.slice/db", "-w", "300"}).status == 0);
    REQUIRE(litectl.kernel.asked.size() == 3);
    CHECK(litectl.kernel.asked[0].u8(LITE_A_TENANTS) == LITE_QOS_BY_CGROUP);
    CHECK(litectl.kernel.asked[1].u64(LITE_A_CGROUP) == st.st_ino);
    CHECK(!litectl.kernel.asked[1].u32(LITE_A_UID));
    // The file has names, because numbers change with the next boot.
    const auto kept = json::parse(read_file(litectl.world.qos_file));
    CHECK(kept["tenants_are"] == "cgroup");
    REQUIRE(kept["rules"].size() == 1);
    CHECK(kept["rules"][0]["cgroup"] == "work.slice/db");
    const auto absolute = (hierarchy / "work.slice/db").string();
    CHECK(litectl({"qos", "set", "--cgroup", absolute, "-c", "2"}).status == 0);
    CHECK(litectl.kernel.asked[3].u64(LITE_A_CGROUP) == st.st_ino);
    CHECK(litectl({"qos", "reset", "--cgroup", "#999999999999"}).status == 0);
    CHECK(litectl.kernel.asked[5].u64(LITE_A_CGROUP) == 999999999999U);
    for (const auto* wrong : {"absent", "#0", "#x", "/"})
        CHECK(litectl({"qos", "set", "--cgroup", wrong, "-w", "3"}).status != 0);
    CHECK(litectl({"qos", "set", "-g", "work.slice", "-u", "3", "-w", "3"}).status != 0);
    CHECK(litectl({"qos", "set", "-g", "work.slice"}).status != 0);
    CHECK(litectl({"qos", "reset"}).status != 0);

    litectl.kernel.answers.clear();
    litectl.kernel.asked.clear();
    CHECK(litectl({"start", "--insecure"}).status == 0);
    REQUIRE(litectl.kernel.asked.size() == 4);
    CHECK(litectl.kernel.asked[1].u64(LITE_A_CGROUP) == st.st_ino);
    CHECK(litectl.kernel.asked[2].u8(LITE_A_TENANTS) == LITE_QOS_BY_CGROUP);

    // Names may be any bytes, and the file may be edited.
    std::filesystem::create_directories(hierarchy / "odd\xff");
    write_file((hierarchy / "odd\xff/cgroup.controllers").string(), "");
    REQUIRE(::stat((hierarchy / "odd\xff").c_str(), &st) == 0);
    message odd(LITE_CMD_QOS_GET);
    odd.put_u64(LITE_A_CGROUP, st.st_ino);
    odd.put_u32(LITE_A_WEIGHT, 20);
    odd.put_u8(LITE_A_CEILING, 4);
    litectl.kernel.answers = {mode, rule, odd};
    CHECK(litectl({"qos", "set", "-m", "fair"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file))["rules"].size() == 2);
    write_file(litectl.world.qos_file,
               R"({"mode": "fair", "rules": [{"cgroup": 5}, 6, {"cgroup": "#5"}]})");
    litectl.kernel.answers = {mode, rule};
    CHECK(litectl({"qos", "set", "-m", "fair"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file))["rules"].size() == 1);

    // The rule of a service that does not run stays in the file until it is removed.
    std::filesystem::remove_all(hierarchy / "work.slice/db");
    litectl.kernel.answers = {mode};
    CHECK(litectl({"qos", "set", "-m", "fair"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file))["rules"].size() == 1);
    CHECK(litectl({"start", "--insecure"}).err.find("no such control group") != std::string::npos);
    CHECK(litectl({"qos", "reset", "-g", "work.slice/db"}).status == 0);
    CHECK(json::parse(read_file(litectl.world.qos_file))["rules"].empty());
}

TEST_CASE("litectl qos: a rule outlives the directory of its control group", "[litectl]") {
    machine litectl;
    const hierarchy groups;
    litectl.world.cgroups = groups.root;
    const auto& file = litectl.world.qos_file;
    litectl.kernel.answers = {fair(), rule_of(groups.number("work.slice/db"))};
    CHECK(litectl({"qos", "set", "-g", "work.slice/db", "-w", "300"}).status == 0);
    groups.make_anew("work.slice/db");
    CHECK(litectl({"qos", "set", "-m", "fair"}).status == 0);
    CHECK(rules_in(file) == "work.slice/db=300 ");

    // A rule for the new directory replaces the one in the file.
    auto anew = rule_of(groups.number("work.slice/db"));
    litectl.kernel.answers.push_back(anew);
    write_file(file, R"({"mode": "fair", "rules": [{"cgroup": "work.slice/db", "weight": 9}]})");
    CHECK(litectl({"qos", "set", "-g", "work.slice/db", "-w", "300"}).status == 0);
    CHECK(rules_in(file) == "work.slice/db=300 ");

    // The file's rule is removed even if the kernel has none for the new directory.
    litectl.kernel.answers.pop_back();
    litectl.kernel.refusal.emplace(ENOENT, "this tenant has no rule");
    litectl.kernel.refuses = [](const message& asked) {
        return asked.u64(LITE_A_CGROUP).has_value();
    };
    CHECK(litectl({"qos", "reset", "-g", "work.slice/db"}).status == 0);
    CHECK(rules_in(file).empty());
    const auto again = litectl({"qos", "reset", "-g", "work.slice/db"});
    CHECK(again.status == 1);
    CHECK(again.err == "litectl: qos reset: this tenant has no rule\n");
}

TEST_CASE("litectl qos reset: a control group by other names", "[litectl]") {
    machine litectl;
    const hierarchy groups;
    litectl.world.cgroups = groups.root;
    const auto& file = litectl.world.qos_file;
    const auto number = groups.number("work.slice/db");
    litectl.kernel.answers = {fair()};
    const std::string as_set =
        R"({"mode": "fair", "rules": [{"cgroup": "work.slice/db", "weight": 300}]})";
    const auto names = {"work.slice/db"s,
                        "work.slice/db/"s,
                        "./work.slice//db"s,
                        "work.slice/../work.slice/db"s,
                        (groups.root / "work.slice/db").string(),
                        (groups.root / "work.slice/db/").string()};
    const auto reset_by_each = [&] {
        for (const auto& name : names) {
            CAPTURE(name);
            write_file(file, as_set);
            CHECK(litectl({"qos", "reset", "-g", name}).status == 0);
            CHECK(rules_in(file).empty());
        }
    };
    reset_by_each();
    write_file(file, as_set);
    CHECK(litectl({"qos", "reset", "-g", "#" + std::to_string(number)}).status == 0);
    CHECK(rules_in(file).empty());

    std::filesystem::remove_all(groups.root / "work.slice/db");
    reset_by_each();
    write_file(file, as_set);
    CHECK(litectl({"qos", "reset", "-g", "work.slice"}).status == 0);
    CHECK(rules_in(file) == "work.slice/db=300 ");
}

TEST_CASE("litectl qos: control groups end while one is looked for", "[litectl]") {
    const hierarchy groups;
    // So many that in any order some come after those that end.
    std::vector<std::string> lasting;
    for (int i = 0; i < 16; i++)
        groups.add(lasting.emplace_back("work-" + std::to_string(i) + ".slice"));
    std::atomic<bool> enough = false;
    std::thread churn([&] {
        const auto each_scope = [&](auto act) {
            for (int i = 0; i < 16; i++)
                act((groups.root / ("run-" + std::to_string(i) + ".scope")).c_str());
        };
        while (!enough) {
            each_scope([](const char* path) { ::mkdir(path, 0700); });
            each_scope([](const char* path) { ::rmdir(path); });
        }
    });
    const tools::cgroups names(groups.root);
    int lost = 0;
    for (int i = 0; i < 200; i++)
        for (const auto& name : lasting)
            lost += names.name(groups.number(name)) != name;
    enough = true;
    churn.join();
    CHECK(lost == 0);
}

TEST_CASE("litectl qos set: half of it is refused", "[litectl]") {
    machine litectl;
    const hierarchy groups;
    litectl.world.cgroups = groups.root;
    litectl.kernel.answers = {fair()};
    // Without the group the kernel is asked nothing.
    CHECK(litectl({"qos", "set", "-m", "fair", "-g", "absent", "-w", "5"}).status == 1);
    CHECK(litectl.kernel.asked.empty());
    // The mode takes effect, and is kept.
    litectl.kernel.refusal.emplace(ENOSPC, "there are too many rules");
    litectl.kernel.refuses = [](const message& asked) { return asked.u32(LITE_A_UID).has_value(); };
    const auto half = litectl({"qos", "set", "-m", "fair", "-u", "7", "-w", "5"});
    CHECK(half.status == 1);
    CHECK(half.err == "litectl: qos set: there are too many rules\n");
    REQUIRE(std::filesystem::exists(litectl.world.qos_file));
    CHECK(json::parse(read_file(litectl.world.qos_file))["mode"] == "fair");
}

TEST_CASE("litectl qos: rules that were not restored stay in the file", "[litectl]") {
    machine litectl;
    const auto& file = litectl.world.qos_file;
    const auto uids = [&] {
        std::string all;
        const auto said = json::parse(read_file(file));
        for (const auto& rule : said["rules"])
            all += rule["uid"].dump() + "=" + rule["weight"].dump() + " ";
        return all;
    };
    write_file(file, R"({"mode": "fair", "rules": [{"uid": 5, "weight": 50, "ceiling": 4},
                     {"uid": 1000, "weight": 9, "ceiling": 4}, {"uid": -1}, {"uid": 4294967296}]})");
    // The kernel has a rule for uid 1000, set meanwhile. The file keeps that for uid 5,
    litectl.kernel.answers = {fair(), rule_of_alice()};
    CHECK(litectl({"qos", "set", "-u", "1000", "-w", "300"}).status == 0);
    CHECK(uids() == "1000=300 5=50 ");

    // even if the kernel refuses a new one,
    litectl.kernel.refusal.emplace(ENOSPC, "there are too many rules");
    litectl.kernel.refuses = [](const message& asked) { return asked.u32(LITE_A_UID).has_value(); };
    CHECK(litectl({"qos", "set", "-m", "fair", "-u", "5", "-w", "60"}).status == 1);
    CHECK(uids() == "1000=300 5=50 ");

    // until it is removed, although the kernel has no such rule.
    litectl.kernel.refusal.emplace(ENOENT, "this tenant has no rule");
    CHECK(litectl({"qos", "reset", "-u", "5"}).status == 0);
    CHECK(uids() == "1000=300 ");
    const auto again = litectl({"qos", "reset", "-u", "5"});
    CHECK(again.status == 1);
    CHECK(again.err == "litectl: qos reset: this tenant has no rule\n");
}

TEST_CASE("litectl qos: a file that does not parse is not replaced", "[litectl]") {
    machine litectl;
    const auto& file = litectl.world.qos_file;
    litectl.kernel.answers = {fair(), rule_of_alice()};
    const auto check_refused = [&](const std::string& content, const std::string& why) {
        CAPTURE(content);
        write_file(file, content);
        for (const tools::arguments& words :
             {tools::arguments{"qos", "set", "-m", "fair"}, {"qos", "reset", "-u", "1000"}}) {
            const auto r = litectl(words);
            CHECK(r.status == 1);
            CHECK(r.err.find(file + ": nothing was changed, as this file is wrong: " + why) !=
                  std::string::npos);
        }
        CHECK(litectl.kernel.asked.empty());
        CHECK(read_file(file) == content);
    };
    check_refused("{\"mode\": \"fair\",\n\"rules\": [{\"uid\": 5,}]}",
                  "parse error at line 2, column 21: ");
    check_refused("", "parse error at line 1, column 1: ");
    check_refused(R"({"mode": "fair"})", "key 'rules' not found");
    check_refused(R"({"mode": "fair", "rules": {"uid": 5}})", "");
    check_refused("[]", "");
}
