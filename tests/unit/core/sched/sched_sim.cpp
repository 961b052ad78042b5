// SPDX-License-Identifier: MIT
// sched-sim: simulates a thousand tenants on one link of 10 Gb/s behind core/sched.c. Prints a
// gnuplot script; with --table, figures. Documentation/scheduling.rst shows both:
//
//     for plot in shares delays; do sched-sim $plot | gnuplot; done
#include "sched_link.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

using namespace lite_test;

namespace {

constexpr std::size_t kTenants = 1000;

struct Tenant {
    std::uint32_t weight;
    std::uint32_t threads;
    double share;  // of the link
};

// One tenant in four has small operations. Weights are 1 to 1000, with as many tenants in each
// order of magnitude. Every tenth tenant has sixteen times as many threads as the others.
std::vector<Tenant> shares(lite_sched_mode mode) {
    SchedSim sim(sched_conf(mode), {}, 18);
    std::mt19937_64 random(18);
    std::vector<Tenant> tenants;
    std::vector<const SchedSim::Source*> sources;
    for (std::size_t i = 0; i < kTenants; i++) {
        const auto magnitude = static_cast<double>(random() % 1000) / 1000 * 3;
        const auto weight = static_cast<std::uint32_t>(std::lround(std::pow(10, magnitude)));
        const std::uint32_t threads = i % 10 ? 4 : 64;
        tenants.push_back({weight, threads, 0});
        sources.push_back(&sim.add(
            {.tenant = sim.tenant(weight), .bytes = i % 4 ? 64U << 10 : 64U, .depth = threads}));
    }
    sim.run(60 * kSecond);
    for (std::size_t i = 0; i < kTenants; i++)
        tenants[i].share =
            static_cast<double>(sources[i]->done_ops) * (sources[i]->bytes + 8192.0) / sim.sent();
    return tenants;
}

void plot_shares() {
    std::puts(
        "set terminal svg size 720,440 dynamic enhanced font 'sans-serif,13' background rgb "
        "'white'\n"
        "set output 'scheduling-shares.svg'\n"
        "set title '1000 tenants, weights 1 to 1000: share of the link'\n"
        "set xlabel 'weight'\nset ylabel 'share'\nset logscale xy\nset grid\n"
        "set key outside right\nset border 3\nset tics nomirror");
    double total = 0;
    for (const auto& [name, mode] :
         {std::pair{"none", LITE_SCHED_NONE}, {"fair", LITE_SCHED_FAIR}}) {
        // Few points, for a readable plot: mean, least and most of each ninth of a magnitude.
        std::map<int, std::vector<std::pair<double, double>>> points;
        total = 0;
        for (const auto& tenant : shares(mode)) {
            points[static_cast<int>(std::log10(tenant.weight) * 9)].emplace_back(tenant.weight,
                                                                                 tenant.share);
            total += tenant.weight;
        }
        std::printf("$%s << end\n", name);
        for (const auto& [magnitude, all] : points) {
            double weight = 0;
            double share = 0;
            double least = 1;
            double most = 0;
            for (const auto& [one_weight, one_share] : all) {
                weight += one_weight;
                share += one_share;
                least = std::min(least, one_share);
                most = std::max(most, one_share);
            }
            const auto n = static_cast<double>(all.size());
            std::printf("%.4g %.4g %.4g %.4g\n", weight / n, share / n, least, most);
        }
        std::puts("end");
    }
    std::printf(
        "plot $none with yerrorbars title 'none' pointtype 7 pointsize 0.4, "
        "$fair with yerrorbars title 'fair' pointtype 7 pointsize 0.4, "
        "x / %.0f title 'by weight' linetype 3\n",
        total);
}

// Urgent operations of 64 bytes of one tenant, beside 999 tenants that stream.
std::vector<std::uint64_t> delays(lite_sched_mode mode, std::uint32_t queue_pairs, double* used) {
    SchedSim sim(sched_conf(mode), {.queue_pairs = queue_pairs}, 18);
    for (std::size_t i = 1; i < kTenants; i++)
        sim.add({.tenant = sim.tenant(LITE_SCHED_WEIGHT_DEFAULT)});
    const auto& urgent = sim.add({.tenant = sim.tenant(LITE_SCHED_WEIGHT_DEFAULT),
                                  .prio = 0,
                                  .bytes = 64,
                                  .pause = kMs,
                                  .from = kSecond,
                                  .record = true});
    sim.run(kSecond);
    const double before = sim.sent();
    sim.run(21 * kSecond);
    *used = (sim.sent() - before) / (20e9 * 1.25);
    return urgent.took;
}

struct Arm {
    const char* name;
    lite_sched_mode mode;
    std::uint32_t queue_pairs;
};

constexpr Arm kArms[] = {
    {"none", LITE_SCHED_NONE, 1},     {"none, 4 queue pairs", LITE_SCHED_NONE, 4},
    {"hw-sep", LITE_SCHED_HW_SEP, 4}, {"sw-pri", LITE_SCHED_SW_PRI, 4},
    {"fair", LITE_SCHED_FAIR, 1},     {"fair, 4 queue pairs", LITE_SCHED_FAIR, 4},
};

void plot_delays() {
    std::puts(
        "set terminal svg size 720,440 dynamic enhanced font 'sans-serif,13' background rgb "
        "'white'\n"
        "set output 'scheduling-delays.svg'\n"
        "set title 'Urgent operations of 64 B beside 999 tenants that stream'\n"
        "set xlabel 'us'\nset ylabel 'part that has completed'\nset logscale x\nset yrange [0:1]\n"
        "set grid\nset key outside right\nset border 3\nset tics nomirror");
    std::string curves;
    for (const auto& arm : kArms) {
        double used = 0;
        auto took = delays(arm.mode, arm.queue_pairs, &used);
        std::sort(took.begin(), took.end());
        std::printf("$arm%td << end\n", &arm - kArms);
        for (int part = 0; part <= 100; part++)
            std::printf("%.1f %.3f\n", static_cast<double>(percentile(took, part / 100.0)) / 1000,
                        part / 100.0);
        std::puts("end");
        curves += std::string(curves.empty() ? "plot " : ", ") + "$arm" +
                  std::to_string(&arm - kArms) + " with lines linewidth 2 title '" + arm.name + "'";
    }
    std::puts(curves.c_str());
}

void table() {
    for (const auto& [name, mode] :
         {std::pair{"none", LITE_SCHED_NONE}, {"fair", LITE_SCHED_FAIR}}) {
        const auto all = shares(mode);
        double weights = 0;
        double worst = 0;
        std::vector<double> parts;
        for (const auto& tenant : all)
            weights += tenant.weight;
        for (const auto& tenant : all) {
            parts.push_back(tenant.share * weights / tenant.weight);
            // The lightest tenants have only a few slices in a minute.
            if (tenant.weight >= 10)
                worst = std::max(worst, std::abs(parts.back() - 1));
        }
        std::printf(
            "%s: Jain's index of share per weight %.4f; weights from 10 on are off by a factor of "
            "up to %.3f\n",
            name, jain(parts), 1 + worst);
    }
    for (const auto& arm : kArms) {
        double used = 0;
        const auto took = delays(arm.mode, arm.queue_pairs, &used);
        std::printf("%-20s urgent p50 %8.1f p99 %8.1f p99.9 %8.1f us, link used %.3f\n", arm.name,
                    static_cast<double>(percentile(took, 0.5)) / 1000,
                    static_cast<double>(percentile(took, 0.99)) / 1000,
                    static_cast<double>(percentile(took, 0.999)) / 1000, used);
    }
    std::printf("a slice %.1f us, an urgent operation alone %.1f us\n", kQuantum / 1250.0,
                (64 + 8192) / 1250.0 + 10);
}

}  // namespace

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    if (!std::strcmp(what, "shares"))
        plot_shares();
    else if (!std::strcmp(what, "delays"))
        plot_delays();
    else if (!std::strcmp(what, "--table"))
        table();
    else {
        std::fputs("usage: sched-sim shares | delays | --table\n", stderr);
        return 2;
    }
    return 0;
}
