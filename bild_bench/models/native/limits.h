// What a machine can do at most, for the limits that decoders are held to: reads, and products out of its caches.
#pragma once

#include "matrix.h"
#include "team.h"

constexpr int STREAMS = 8;  // sums at a time: more than one addition's latency
constexpr int64_t LIMIT_INPUTS = 512, LIMIT_OUTPUTS = PANELS * LANES;  // weights that stay in the second-level cache

// The sum of a member's share; what is left of its last group of vectors is left out.
inline float read_share(const Member& me, const float* values, int64_t count) {
    constexpr int64_t group = STREAMS * LANES;
    Vector sums[STREAMS] = {};
    for (int64_t i = me.first(count / group) * group; i < me.last(count / group) * group; i += group)
        for (int s = 0; s < STREAMS; s++) {
            const float* at = values + i + s * LANES;
            __builtin_prefetch(at + AHEAD * LANES);
            sums[s] += load(at);
        }
    for (int s = 1; s < STREAMS; s++) sums[0] += sums[s];
    return sum_of(sums[0]);
}

// A member's share of `count` products of ROWS rows with a matrix of the member's own.
inline float multiply_share(const Member& me, int64_t count) {
    static thread_local std::vector<float> weights(LIMIT_INPUTS * LIMIT_OUTPUTS), x(ROWS * LIMIT_INPUTS),
        y(ROWS * LIMIT_OUTPUTS);
    Matrix matrix{weights.data(), LIMIT_INPUTS, PANELS};
    for (int64_t i = me.first(count); i < me.last(count); i++)
        multiply(matrix, 0, PANELS, {x.data(), ROWS, LIMIT_INPUTS}, y.data(), LIMIT_OUTPUTS);
    return y[0];
}
