// SPDX-License-Identifier: MIT
#include "workloads/rivals.hpp"

#include <thread>
#include <utility>

namespace perf {

namespace {

Clock::duration time_of_stream(const Slice& slice) {
    constexpr Clock::duration if_calls_are_counted = std::chrono::milliseconds(200);
    return slice.time == std::chrono::nanoseconds::max() ? if_calls_are_counted : slice.time;
}

Interval look(const Slice& slice) {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(time_of_stream(slice));
    return {begin, Clock::now()};
}

}  // namespace

Contest contest_beside(Transport& urgent, const Request& small, Streams& streams,
                       const Slice& slice) {
    streams.start();
    const Interval alone = look(slice);
    std::vector<double> times = urgent.times(small, slice);
    const Rates rates = streams.stop(alone, {alone.end, Clock::now()});
    return {std::move(times), rates.before, rates.after};
}

Contest contest_in_one(Transport& shared, const Request& small, const Bulk& bulk,
                       const Slice& slice) {
    BulkStream stream(shared, bulk);
    stream.next();
    const auto begin = Clock::now();
    while (Clock::now() - begin < time_of_stream(slice))
        stream.next();
    const auto middle = Clock::now();
    Contest seen{time_calls(slice,
                            [&] {
                                shared.post({&small, 1});
                                // Collect the large operations that were posted before.
                                for (unsigned i = 0; i < bulk.depth; i++)
                                    stream.next();
                                shared.collect();
                            }),
                 0, 0};
    const auto end = Clock::now();
    stream.end();
    seen.alone = stream.pace().in({begin, middle});
    seen.beside = stream.pace().in({middle, end});
    return seen;
}

Division divide(Streams& first, Streams& second, const Slice& slice) {
    first.start();
    const Interval alone = look(slice);
    second.start();
    const Interval both = look(slice);
    const Rates of_second = second.stop(both, both);
    const Rates of_first = first.stop(alone, both);
    return {of_first.before, of_first.after, of_second.after};
}

}  // namespace perf
