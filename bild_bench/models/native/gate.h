// Waiting for what another thread does: by looking, which answers at once, and after a while asleep, which leaves the
// processor to whoever is waited for.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

inline int64_t nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class Gate {
public:
    // Until `holds`, after whose change somebody calls `notify`. Returns the nanoseconds where they were more than
    // `patience`, else 0.
    template <typename Holds>
    int64_t wait(const Holds& holds, int64_t patience) {
        for (int64_t began = 0;;) {
            for (int looks = 0; looks < LOOKS; looks++) {
                if (holds()) return 0;
                pause_briefly();
            }
            int64_t now = nanoseconds();
            if (began == 0) began = now;
            if (now - began > patience) return sleep(holds, began);
        }
    }

    void notify() {
        // Either this sees the sleeper, or the sleeper sees what has changed.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_relaxed) == 0) return;
        // Who has looked and is about to sleep holds the mutex until it does.
        std::lock_guard<std::mutex>{mutex_};
        woken_.notify_all();
    }

private:
    static constexpr int LOOKS = 64;

    template <typename Holds>
    int64_t sleep(const Holds& holds, int64_t began) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        woken_.wait(lock, holds);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return nanoseconds() - began;
    }

    std::mutex mutex_;
    std::condition_variable woken_;
    alignas(64) std::atomic<int64_t> sleepers_{0};
};
