// The threads of one call: a parallel region that is entered once, with barriers between its steps.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#if defined(_OPENMP)
#include <omp.h>
#endif

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Steps take microseconds, so members wait by looking; but where other programs want the processor, the one that is
// waited for may not be running, and after a while each look gives the processor away.
class Barrier {
public:
    explicit Barrier(int64_t size) : size_(size) {}

    void wait() {
        int64_t round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int64_t looks = 0; round_.load(std::memory_order_acquire) == round; looks++)
            looks < LOOKS ? pause_briefly() : (void)sched_yield();
    }

private:
    static constexpr int64_t LOOKS = 2000;
    const int64_t size_;
    alignas(64) std::atomic<int64_t> arrived_{0};
    alignas(64) std::atomic<int64_t> round_{0};
};

struct Member {
    int64_t index, size;
    Barrier* barrier;

    // This member's part of `count` units.
    int64_t first(int64_t count) const { return count * index / size; }
    int64_t last(int64_t count) const { return count * (index + 1) / size; }

    void wait() const {
        if (size > 1) barrier->wait();
    }
};

// Runs work(Member) on `threads` threads; without OpenMP, or with one thread, on the caller's alone.
template <typename Work>
void run_team(int64_t threads, const Work& work) {
#if defined(_OPENMP)
    if (threads > 1) {
        Barrier* barrier = nullptr;
#pragma omp parallel num_threads((int)threads) shared(barrier)
        {
            // The system may grant fewer threads than were asked for.
#pragma omp single
            barrier = new Barrier(omp_get_num_threads());
            work(Member{omp_get_thread_num(), omp_get_num_threads(), barrier});
        }
        delete barrier;
        return;
    }
#endif
    work(Member{0, 1, nullptr});
}
