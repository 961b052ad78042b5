// SPDX-License-Identifier: MIT
//
// liblite for C++20: coroutines. Operations that wait for another node or program can be awaited;
// one thread and one io_uring carry them all.
//
//    lite::task<> serve(lite::executor& ex, const lite::function& f) {
//        std::array<std::byte, 64> buffer;
//        for (;;) {
//            auto request = co_await ex.receive(f, buffer);
//            co_await ex.reply(request, 0, std::span(buffer).first(request.length));
//        }
//    }
//
//    lite::context node;
//    lite::function echo(node, {.name = "echo", .mode = 0666, .max_request = 64, .max_reply = 64});
//    lite::executor ex(node);
//    ex.run(serve(ex, echo));
//
// Needs liburing (-luring) beside liblite. Functions throw lite::error, a std::system_error, as
// those of the same name in <lite/lite.h>. A std::stop_token cancels what waits, which then throws
// ECANCELED; receive(), call() and the like, locks and barriers have time-outs.
//
// An executor belongs to the thread that made it; everything awaited on it, and every
// std::stop_source of tokens given to it, may be used only in that thread, which must destroy it,
// too: another one cannot wait for what is in flight, and would leak the coroutines. In a child of
// fork(2) an inherited executor can only be destroyed. Buffers must stay until the operation on
// them has been awaited. With GCC 12, whatever a coroutine keeps by reference must outlive it.
//
// A coroutine that ends by an exception, or with its executor, leaves nothing behind: held_lock
// releases its lock, taken_request its request, region its handle.
#pragma once

#include <lite/async/engine.hpp>
#include <lite/async/manage.hpp>
#include <lite/async/memory.hpp>
#include <lite/async/rpc.hpp>
#include <lite/async/sync.hpp>
#include <lite/async/task.hpp>

namespace lite {

// Runs coroutines. Its destructor cancels what is in flight.
//
// The bases hold what can be awaited: tasks, descriptors, time and any ioctl in
// <lite/async/engine.hpp>, the memory of LMRs in memory.hpp, LMRs as a whole in manage.hpp, calls
// and requests in rpc.hpp, locks and barriers in sync.hpp.
class executor : private detail::engine,
                 public memory_calls,
                 public manage_calls,
                 public rpc_calls,
                 public sync_calls {
  public:
    // The context must outlive it. @throws error, as io_uring_queue_init(3)
    explicit executor(context& node, const executor_options& options = {})
        : engine(node.get(), options),
          memory_calls(static_cast<engine&>(*this)),
          manage_calls(static_cast<engine&>(*this)),
          rpc_calls(static_cast<engine&>(*this)),
          sync_calls(static_cast<engine&>(*this)) {}

    using lmr = lite::lmr;

    using engine::all;
    using engine::command;
    using engine::poll;
    using engine::run;
    using engine::sleep;
    using engine::spawn;
    // engine::submit() is internal.
    using memory_calls::submit;
};

}  // namespace lite
