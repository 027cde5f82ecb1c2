// The threads of one call: helpers that wait for calls, and barriers between a call's steps.
//
// Steps take microseconds and a thread that has lost its processor to another program stays away for milliseconds, so
// nobody waits long for anybody: a call begins without the helpers that do not come at once, who waits looks for a
// while and then sleeps, and after a call in which members were waited for the next ones are done by the caller alone,
// for ten times as long as was waited. Who computes what changes no bit of the results.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>

#include "gate.h"

class Team;

// One thread's place in a call.
struct Member {
    int64_t index = 0, size = 1;
    Team* team = nullptr;
    int64_t* waited = nullptr;

    // This member's part of `count` units.
    int64_t first(int64_t count) const { return count * index / size; }
    int64_t last(int64_t count) const { return count * (index + 1) / size; }

    inline void wait() const;
};

// How many calls were to be done by several threads, and how many of them had to do without one or to wait for one.
struct TeamCounts {
    std::atomic<int64_t> calls{0}, late{0};
};

inline TeamCounts team_counts;

class Team {
public:
    using Share = void (*)(const void* work, const Member& me);

    // The process's only team; never destroyed, since its helpers may run until the process has ended.
    static Team& the();

    // Does the work on up to `size` threads; false where another thread's call is under way.
    bool run(int64_t size, Share share, const void* work) {
        std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
        if (!mine.owns_lock()) return false;
        team_counts.calls.fetch_add(1, std::memory_order_relaxed);
        if (nanoseconds() < alone_until_) {
            team_counts.late.fetch_add(1, std::memory_order_relaxed);
            share(work, Member{});
            return true;
        }
        int64_t asked = enlist(std::min(size - 1, MOST_HELPERS)), began = nanoseconds(), waited = 0;
        int64_t joined = gather(asked, share, work, began);
        share(work, Member{0, 1 + joined, this, &waited});
        waited += inside_.wait([&] { return left_.load(std::memory_order_acquire) == joined; }, PATIENCE);
        left_.store(0, std::memory_order_relaxed);
        settle(asked - joined, std::max(waited, longest_.exchange(0, std::memory_order_relaxed)), began);
        return true;
    }

    // Until all `size` members are here; returns the nanoseconds, if they were many.
    int64_t meet(int64_t size) {
        int64_t round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            inside_.notify();
            return 0;
        }
        return inside_.wait([&] { return round_.load(std::memory_order_acquire) != round; }, PATIENCE);
    }

private:
    // Nanoseconds. Between two calls of a text there are some hundred microseconds of Python at most.
    static constexpr int64_t PATIENCE = 100'000, FOR_HELPERS = 100'000, IDLE = 500'000, LONGEST_ALONE = 1'000'000'000;
    static constexpr int64_t TIMES_ALONE = 10;
    static constexpr int64_t MOST_HELPERS = 63;  // a bit each, beside CLOSED
    static constexpr uint64_t CLOSED = 1ull << 63;

    // Starts the helpers that are missing; returns how many of those wanted there are.
    int64_t enlist(int64_t wanted) {
        try {
            for (; helpers_ < wanted; helpers_++) std::thread([this, index = helpers_] { serve(index); }).detach();
        } catch (const std::system_error&) {
            // The system grants no more threads.
        }
        return std::min(helpers_, wanted);
    }

    // Opens a call, and begins it with those who have come; returns how many.
    int64_t gather(int64_t asked, Share share, const void* work, int64_t began) {
        share_ = share, work_ = work, number_++;
        asked_.store(asked, std::memory_order_relaxed);
        members_.store(0, std::memory_order_release);
        opened_.store(number_, std::memory_order_release);
        idle_.notify();
        uint64_t wanted = (1ull << asked) - 1;
        while ((members_.load(std::memory_order_acquire) & wanted) != wanted && nanoseconds() - began < FOR_HELPERS)
            for (int i = 0; i < 8; i++) pause_briefly();
        chosen_ = members_.fetch_or(CLOSED, std::memory_order_acq_rel);
        started_.store(number_, std::memory_order_release);
        inside_.notify();
        return __builtin_popcountll(chosen_);
    }

    // A helper's life.
    void serve(int64_t index) {
        uint64_t mine = 1ull << index;
        for (int64_t seen = 0;;) {
            idle_.wait([&] { return opened_.load(std::memory_order_acquire) != seen; }, IDLE);
            seen = opened_.load(std::memory_order_acquire);
            if (index >= asked_.load(std::memory_order_relaxed)) continue;
            if (members_.fetch_or(mine, std::memory_order_acq_rel) & CLOSED) continue;
            // Who has joined keeps the call open; it may be a later one than was seen.
            seen = number_;
            int64_t waited = inside_.wait([&] { return started_.load(std::memory_order_acquire) == seen; }, PATIENCE);
            share_(work_, Member{1 + __builtin_popcountll(chosen_ & (mine - 1)), 1 + __builtin_popcountll(chosen_),
                                 this, &waited});
            int64_t longest = longest_.load(std::memory_order_relaxed);
            while (waited > longest && !longest_.compare_exchange_weak(longest, waited, std::memory_order_relaxed)) {}
            left_.fetch_add(1, std::memory_order_acq_rel);
            inside_.notify();
        }
    }

    // What a call tells about the next ones. Shares are not quite equal, so a part of a call may be waiting.
    void settle(int64_t absent, int64_t waited, int64_t began) {
        int64_t now = nanoseconds(), alone = 0;
        bool late = waited > (now - began) / 3;
        // One call without a helper that was asleep is nothing; it is awake for the next.
        missed_ = absent > 0 ? std::min<int64_t>(missed_ + 1, 8) : 0;
        if (late) alone = TIMES_ALONE * waited;
        if (missed_ > 1) alone = std::max(alone, FOR_HELPERS << missed_);
        if (late || absent > 0) team_counts.late.fetch_add(1, std::memory_order_relaxed);
        alone_until_ = alone > 0 ? now + std::min(alone, LONGEST_ALONE) : 0;
    }

    std::mutex busy_;
    Gate idle_, inside_;
    // The caller's own.
    int64_t helpers_ = 0, missed_ = 0, alone_until_ = 0;
    // The call; constant while it has members.
    Share share_ = nullptr;
    const void* work_ = nullptr;
    int64_t number_ = 0;
    uint64_t chosen_ = 0;
    alignas(64) std::atomic<uint64_t> members_{CLOSED};
    std::atomic<int64_t> asked_{0};
    alignas(64) std::atomic<int64_t> opened_{0};
    alignas(64) std::atomic<int64_t> started_{0};
    alignas(64) std::atomic<int64_t> arrived_{0};
    alignas(64) std::atomic<int64_t> round_{0};
    alignas(64) std::atomic<int64_t> left_{0};
    std::atomic<int64_t> longest_{0};
};

inline Team*& current_team() {
    static Team* team = new Team;
    return team;
}

inline Team& Team::the() {
#if defined(__unix__) || defined(__APPLE__)
    // Threads do not survive a fork: a child starts a team of its own.
    static const int forks = pthread_atfork(nullptr, nullptr, [] { current_team() = new Team; });
    (void)forks;
#endif
    return *current_team();
}

inline void Member::wait() const {
    if (size > 1) *waited += team->meet(size);
}

// Runs work(Member) on `threads` threads, or on fewer where others keep the processors busy.
template <typename Work>
void run_team(int64_t threads, const Work& work) {
    auto share = [](const void* of, const Member& me) { (*static_cast<const Work*>(of))(me); };
    if (threads < 2 || !Team::the().run(threads, share, &work)) work(Member{});
}
