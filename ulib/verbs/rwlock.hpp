// SPDX-License-Identifier: MIT
//
// A lock for std::unique_lock and std::shared_lock under which threads that poll without end do not
// keep out the one that adds an object: std::shared_mutex lets in readers first. A thread must not
// lock it twice.
#pragma once

#include <pthread.h>

namespace lite::verbs {

class rwlock {
  public:
    rwlock() {
        pthread_rwlockattr_t attr;
        ::pthread_rwlockattr_init(&attr);
        ::pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        ::pthread_rwlock_init(&m_lock, &attr);
        ::pthread_rwlockattr_destroy(&attr);
    }
    rwlock(const rwlock&) = delete;
    rwlock& operator=(const rwlock&) = delete;
    ~rwlock() { ::pthread_rwlock_destroy(&m_lock); }

    void lock() { ::pthread_rwlock_wrlock(&m_lock); }
    void unlock() { ::pthread_rwlock_unlock(&m_lock); }
    void lock_shared() { ::pthread_rwlock_rdlock(&m_lock); }
    void unlock_shared() { ::pthread_rwlock_unlock(&m_lock); }

  private:
    pthread_rwlock_t m_lock;
};

}  // namespace lite::verbs
