// SPDX-License-Identifier: MIT

#include "completions/cq.hpp"

#include "completions/progress.hpp"
#include "log.hpp"
#include "real.hpp"
#include "registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <pthread.h>

namespace lite::verbs {
namespace {

registry<uint32_t, work_queue>& queues() {
    static auto& all = *new registry<uint32_t, work_queue>;
    return all;
}

registry<ibv_cq*, completion_queue>& all_cqs() {
    static auto& all = *new registry<ibv_cq*, completion_queue>;
    return all;
}

}  // namespace

void work_queue::add(const std::shared_ptr<work_queue>& queue) {
    static std::atomic<uint32_t> last = 0;
    queue->m_id = ++last;
    queues().add(queue->m_id, queue);
}

void work_queue::remove_id() { queues().remove(m_id); }

void work_queue::add_spares(uint32_t n) {
    std::list<ready> more(n);
    const std::lock_guard lock(m_spare_lock);
    m_spare.splice(m_spare.end(), more);
}

void work_queue::take_spare(std::list<ready>& to) {
    const std::lock_guard lock(m_spare_lock);
    to.splice(to.end(), m_spare, m_spare.begin());
}

void work_queue::give_back(std::list<ready>& from) {
    const std::lock_guard lock(m_spare_lock);
    m_spare.splice(m_spare.end(), from, from.begin());
}

completion_queue::completion_queue(ibv_cq* real, progress& progress,
                                   std::shared_ptr<event_channel> channel)
    : m_real(real),
      m_ops(real_ops(real->context)),
      m_progress(progress),
      m_channel(std::move(channel)),
      m_source(m_channel ? m_channel->add(real) : event_channel::handle()),
      m_cqe(real->cqe) {}

completion_queue::~completion_queue() {
    if (m_channel)
        m_channel->remove(m_source);
}

// The program has polled the first completion, or never will. With m_ready_lock.
void completion_queue::retire(std::list<ready>& from, bool polled) {
    if (from.front().is_silent)
        m_silent--;
    const std::shared_ptr<work_queue> queue = std::move(from.front().queue);
    const uint64_t number = from.front().number;
    queue->give_back(from);
    // Now another work request may be posted, which needs that completion.
    if (polled)
        queue->on_polled(number);
}

// Takes up to 16 completions from the device. True: there may be more.
bool completion_queue::harvest_once() {
    ibv_wc found[16];
    const int n = m_ops.poll_cq(m_real, 16, found);
    if (n < 0)
        debug("polling the device fails");
    for (int i = 0; i < n; i++) {
        // Completions of destroyed queues are dropped.
        if (const auto queue = queues().find(static_cast<uint32_t>(found[i].wr_id >> 32)))
            queue->on_completion(static_cast<uint32_t>(found[i].wr_id), found[i], *this);
    }
    return n == 16;
}

void completion_queue::harvest() {
    const std::lock_guard lock(m_harvest);
    if (m_is_closed)
        return;
    while (harvest_once()) {
    }
}

void completion_queue::watch() {
    if (const int err = m_progress.start())
        say_once("nothing goes on unless the program polls: no thread", std::strerror(err));
    const std::lock_guard lock(m_harvest);
    if (m_is_closed)
        return;
    m_ops.req_notify_cq(m_real, 0);
    // The device reports no event for completions that came before.
    while (harvest_once()) {
    }
}

// Returns all there are, up to @n: a program that an event has woken may poll only once.
int completion_queue::poll(int n, ibv_wc* wc) {
    int i = 0;
    for (bool harvested = false;; harvested = true) {
        {
            const std::lock_guard lock(m_ready_lock);
            for (; i < n && !m_ready.empty(); i++) {
                wc[i] = m_ready.front().wc;
                retire(m_ready, true);
            }
            // LITE may complete in one call what a device completes one by one: a program that
            // polls once for each event gets another event for those left that had none.
            if (i && i == n && m_silent && m_armed == for_any)
                notify_of_silent_locked();
        }
        if (i == n || harvested)
            return i;
        harvest();
    }
}

// With m_ready_lock.
void completion_queue::notify_locked() {
    m_armed = not_armed;
    m_has_news = false;
    m_channel->push(m_source);
}

// An event for a completion that has made none, if there is one. With m_ready_lock.
void completion_queue::notify_of_silent_locked() {
    const auto first = std::ranges::find(m_ready, true, &ready::is_silent);
    if (first != m_ready.end()) {
        first->is_silent = false;
        m_silent--;
    }
    notify_locked();
}

void completion_queue::push(const ibv_wc& wc, std::shared_ptr<work_queue> queue, uint64_t number) {
    std::list<ready> made;
    queue->take_spare(made);
    const std::lock_guard lock(m_ready_lock);
    // Only the device knows whether a receive was solicited; if so, it reports an event.
    const bool is_silent =
        m_armed != for_any && (m_armed != for_solicited || wc.status == IBV_WC_SUCCESS);
    made.front() = {wc, std::move(queue), number, is_silent};
    m_ready.splice(m_ready.end(), made);
    m_has_news = m_armed != not_armed;
    if (is_silent)
        m_silent++;
    else
        notify_locked();
}

void completion_queue::drop(const work_queue* queue) {
    const std::lock_guard lock(m_ready_lock);
    std::list<ready> dropped;
    for (auto i = m_ready.begin(); i != m_ready.end();) {
        const auto one = i++;
        if (one->queue.get() == queue)
            dropped.splice(dropped.end(), m_ready, one);
    }
    while (!dropped.empty())
        retire(dropped, false);
}

int completion_queue::request_notify(bool solicited_only) {
    if (!m_channel)
        return 0;
    if (const int err = m_progress.start())
        return err;
    // Older completions cause no event: some programs take one without a completion for an error.
    harvest();
    {
        const std::lock_guard lock(m_ready_lock);
        if (m_armed != for_any)
            m_armed = solicited_only ? for_solicited : for_any;
    }
    // Programs poll once more after this, and so find what came before.
    return m_ops.req_notify_cq(m_real, solicited_only);
}

void completion_queue::on_event() {
    harvest();
    bool again = m_wanted > 0;
    {
        const std::lock_guard lock(m_ready_lock);
        if (m_has_news && !m_ready.empty())
            notify_of_silent_locked();
        else if (m_armed != not_armed)
            again = true;  // the event was for older completions
    }
    if (!again)
        return;
    watch();
    const std::lock_guard lock(m_ready_lock);
    if (m_has_news && !m_ready.empty())
        notify_of_silent_locked();
}

// With m_harvest. ibv_cq.cqe shows the device's size, which may be larger than what the program has
// asked for: libmlx5, libmlx4 and libhns find completions by that field.
int completion_queue::resize_locked(int cqe, uint32_t reserved) {
    ibv_device_attr attr = {};
    if (::ibv_query_device(m_real->context, &attr))
        return EIO;
    // Empty it first: a CQ cannot become smaller than what is in it, unwanted completions included.
    while (harvest_once()) {
    }
    // Less than that, at the device's limit, is enough if completions are harvested in time.
    const int wanted = std::max(cqe, std::min(attr.max_cqe, cqe + static_cast<int>(reserved)));
    return real().resize_cq(m_real, wanted);
}

int completion_queue::reserve(uint32_t n) {
    const std::lock_guard lock(m_harvest);
    const int err = resize_locked(m_cqe, m_reserved + n);
    if (!err)
        m_reserved += n;
    return err;
}

void completion_queue::release(uint32_t n) {
    const std::lock_guard lock(m_harvest);
    m_reserved -= n;
}

int completion_queue::resize(int cqe) {
    const std::lock_guard lock(m_harvest);
    const int err = resize_locked(cqe, m_reserved);
    if (!err)
        m_cqe = cqe;
    return err;
}

void completion_queue::close() {
    {
        const std::lock_guard lock(m_harvest);
        // Completions that are left belong to SRQs, which live on and need their slots back.
        while (harvest_once()) {
        }
        m_is_closed = true;
    }
    {
        const std::lock_guard lock(m_ready_lock);
        m_armed = not_armed;  // on_event() may have harvested already
        m_has_news = false;
        while (!m_ready.empty())
            retire(m_ready, true);
    }
    // No lock is held: the thread that has to acknowledge may poll first.
    if (m_channel)
        m_channel->forget(m_source);
}

void completion_queue::reopen() {
    const std::lock_guard lock(m_harvest);
    m_is_closed = false;
}

std::shared_ptr<completion_queue> completion_queue::find(ibv_cq* cq) { return all_cqs().find(cq); }

void completion_queue::add(const std::shared_ptr<completion_queue>& cq) {
    all_cqs().add(cq->m_real, cq);
}

void completion_queue::remove() { all_cqs().remove(m_real); }

void completion_queue::swap_channel(ibv_cq* cq, ibv_comp_channel* channel) {
    // Counts the CQs of a channel, as libibverbs does.
    const auto count = [](ibv_comp_channel* c, int n) {
        ::pthread_mutex_lock(&c->context->mutex);
        c->refcnt += n;
        ::pthread_mutex_unlock(&c->context->mutex);
    };
    if (cq->channel)
        count(cq->channel, -1);
    cq->channel = channel;
    if (channel)
        count(channel, 1);
}

void completion_queue::acknowledge(unsigned n) {
    if (m_channel)
        m_channel->acknowledge(m_source, n);
}

}  // namespace lite::verbs
