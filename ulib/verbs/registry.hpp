// SPDX-License-Identifier: MIT
//
// Finds the library's object for a pointer or number that programs know. Thread-safe.
#pragma once

#include "rwlock.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace lite::verbs {

// This process is a child made by fork(2). It must not use its parent's objects, nor take a lock: a
// thread that it does not have may hold it.
inline std::atomic<bool> is_child = false;

template <typename K, typename T>
class registry {
  public:
    void add(K key, std::shared_ptr<T> object) {
        const std::unique_lock lock(m_mutex);
        m_objects[key] = std::move(object);
    }

    std::shared_ptr<T> find(K key) const {
        if (is_child)
            return nullptr;
        const std::shared_lock lock(m_mutex);
        const auto found = m_objects.find(key);
        return found == m_objects.end() ? nullptr : found->second;
    }

    std::shared_ptr<T> remove(K key) {
        if (is_child)
            return nullptr;
        const std::unique_lock lock(m_mutex);
        const auto found = m_objects.find(key);
        if (found == m_objects.end())
            return nullptr;
        std::shared_ptr<T> object = std::move(found->second);
        m_objects.erase(found);
        return object;
    }

  private:
    mutable rwlock m_mutex;
    std::unordered_map<K, std::shared_ptr<T>> m_objects;
};

}  // namespace lite::verbs
