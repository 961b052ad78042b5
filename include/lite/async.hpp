// SPDX-License-Identifier: MIT
//
// liblite for C++20: coroutines. What waits for another node, or for another
// program, is awaited; one thread, and one io_uring, carry all of it.
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
// Needs liburing (-luring) beside liblite. Everything throws lite::error, a
// std::system_error, as the function of the same name in <lite/lite.h>. What can
// wait can be cancelled by a std::stop_token, and is ECANCELED then; receive(), call()
// and the like, locks and barriers have time-outs.
//
// An executor belongs to the thread that made it; everything awaited of it, and
// every std::stop_source that it is given tokens of, is used there and nowhere
// else. Buffers have to stay until what uses them has been awaited. With GCC 12,
// give a coroutine nothing to keep by reference that is not there longer than it.
//
// What a coroutine holds when it ends by an exception, or with its executor, it does
// not leave behind: a lock is given back by held_lock, a request by taken_request, a
// handle by region.
#pragma once

#include <lite/async/engine.hpp>
#include <lite/async/manage.hpp>
#include <lite/async/memory.hpp>
#include <lite/async/rpc.hpp>
#include <lite/async/sync.hpp>
#include <lite/async/task.hpp>

namespace lite {

// Runs coroutines. What it has under way is cancelled when it is destroyed.
//
// What can be awaited of it is in the headers of its bases: tasks, descriptors, time
// and any ioctl in <lite/async/engine.hpp>, the memory of LMRs in memory.hpp, LMRs as
// a whole in manage.hpp, calls and requests in rpc.hpp, locks and barriers in
// sync.hpp.
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
    // Not the engine's, which is for those who carry things out.
    using memory_calls::submit;
};

}  // namespace lite
