// Final norm and output projection, with the best id and the log of the sum of exponentials of each row.
//
// The vocabulary is gone through in chunks of a fixed size, whose sums are added in their order: the result does not
// depend on the number of threads.
#pragma once

#include <cmath>

#include "layers.h"

constexpr int64_t CHUNK_PANELS = 4 * PANELS;
constexpr int64_t CHUNK = CHUNK_PANELS * LANES;

struct Scores {
    float* logits;  // [n][vocabulary]
    int64_t* ids;   // [n]
    float* logprobs;  // [n]: of those ids
};

struct Partial {
    float best, sum;  // of one row in one chunk: sum of e^(logit - best)
};

inline void score_chunk(const Model& model, const Rows& x, int64_t chunk, float* logits, Partial* partials) {
    static thread_local std::vector<float> space;
    float* product = grown(space, x.count * CHUNK);
    int64_t first = chunk * CHUNK_PANELS, last = first + CHUNK_PANELS;
    multiply(model.head, first, last < model.head.panels ? last : model.head.panels, x, product, CHUNK);
    int64_t from = chunk * CHUNK, left = model.shape.vocabulary - from, count = left < CHUNK ? left : CHUNK;
    for (int64_t row = 0; row < x.count; row++) {
        float* scores = product + row * CHUNK;
        std::memcpy(logits + row * model.shape.vocabulary + from, scores, count * sizeof(float));
        partials[row].sum = exponentiate(scores, count, partials[row].best);
    }
}

// One row's chunks put together. Of equal scores the lowest id wins.
inline void combine(const Partial* partials, int64_t step, int64_t chunks, const float* logits, int64_t vocabulary,
                    int64_t& id, float& logprob) {
    int64_t winner = 0;
    for (int64_t chunk = 1; chunk < chunks; chunk++)
        if (partials[chunk * step].best > partials[winner * step].best) winner = chunk;
    float best = partials[winner * step].best, sum = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        sum += partials[chunk * step].sum * std::exp(partials[chunk * step].best - best);
    id = winner * CHUNK;
    while (id + 1 < vocabulary && !(logits[id] == best)) id++;
    logprob = -std::log(sum);
}

inline void score_rows(Model& model, const float* states, int64_t n, int64_t threads, const Scores& out) {
    static thread_local std::vector<float> space;
    static thread_local std::vector<Partial> partials;
    const Shape& shape = model.shape;
    int64_t chunks = (shape.vocabulary + CHUNK - 1) / CHUNK, stride = padded(shape.width);
    Rows x{grown(space, n * stride), n, stride};
    for (int64_t row = 0; row < n; row++) {
        std::memset(x.row(row), 0, stride * sizeof(float));
        std::memcpy(x.row(row), states + row * shape.width, shape.width * sizeof(float));
        normalise(x.row(row), model.final_norm, shape.width, shape.epsilon, shape.head_scale, x.row(row));
    }
    if ((int64_t)partials.size() < chunks * n) partials.resize(chunks * n);
    Partial* found = partials.data();
    run_team(threads, [&](const Member& me) {
        for (int64_t chunk = me.first(chunks); chunk < me.last(chunks); chunk++)
            score_chunk(model, x, chunk, out.logits, found + chunk * n);
        me.wait();
        for (int64_t row = me.first(n); row < me.last(n); row++)
            combine(found + row, n, chunks, out.logits + row * shape.vocabulary, shape.vocabulary, out.ids[row],
                    out.logprobs[row]);
    });
}
