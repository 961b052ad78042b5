// SPDX-License-Identifier: MIT
//
// From the objects that programs know (pointers, numbers) to ours. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace lite::verbs {

// A child of fork(2) has nothing of ours; and a thread that it lacks may hold any lock.
inline std::atomic<bool> is_child = false;

template <typename K, typename T>
class registry {
  public:
    void add(K key, std::shared_ptr<T> object) {
        const std::unique_lock lock(m_mutex);
        m_objects[key] = std::move(object);
    }

    // nullptr: there is none.
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
    mutable std::shared_mutex m_mutex;
    std::unordered_map<K, std::shared_ptr<T>> m_objects;
};

}  // namespace lite::verbs
