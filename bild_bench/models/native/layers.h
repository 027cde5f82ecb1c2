// Layers of the decoder and of the encoder, done by every member of a team on its own share: of the outputs of a product, or of the heads.
#pragma once

#include <algorithm>

#include "attention.h"
#include "team.h"

inline float* grown(std::vector<float>& space, size_t size) {
    if (space.size() < size) space.resize(size);
    return space.data();
}

// Room for the states of n rows between the steps; kept by each calling thread.
struct Space {
    std::vector<float> states, projected, mixed, inner;
};

struct Pass {
    Model& model;
    Rows x, projected, mixed, inner;  // [n][width], [n][3 * inner width], [n][inner width], [n][feed width]
    int64_t start;                    // position of the first row

    Pass(Model& m, Space& space, int64_t n, int64_t from) : model(m), start(from) {
        const Shape& s = m.shape;
        auto rows = [n](std::vector<float>& values, int64_t width) {
            return Rows{grown(values, n * padded(width)), n, padded(width)};
        };
        x = rows(space.states, s.width);
        projected = rows(space.projected, 3 * s.inner());
        mixed = rows(space.mixed, s.inner());
        inner = rows(space.inner, s.feed_width);
    }
};

// Each member norms all rows for itself: that is less work than to wait for the others.
inline Rows normed(const Pass& pass, const float* weight) {
    static thread_local std::vector<float> space;
    Rows out{grown(space, pass.x.count * pass.x.stride), pass.x.count, pass.x.stride};
    for (int64_t row = 0; row < out.count; row++)
        normalise(pass.x.row(row), weight, pass.model.shape.width, pass.model.shape.epsilon, 1.0f, out.row(row));
    return out;
}

inline void project(const Member& me, const Matrix& matrix, const Rows& x, const Rows& y) {
    int64_t first = me.first(matrix.panels), last = me.last(matrix.panels);
    multiply(matrix, first, last, x, y.values + first * LANES, y.stride);
}

// x += the product of `from` with a matrix.
inline void add_projected(const Member& me, const Pass& pass, const Matrix& matrix, const Rows& from) {
    static thread_local std::vector<float> space;
    int64_t first = me.first(matrix.panels), last = me.last(matrix.panels), width = (last - first) * LANES;
    float* product = grown(space, from.count * width);
    multiply(matrix, first, last, from, product, width);
    for (int64_t row = 0; row < from.count; row++) {
        float* x = pass.x.row(row) + first * LANES;
        for (int64_t i = 0; i < width; i += LANES) store(x + i, load(x + i) + load(product + row * width + i));
    }
}

inline void remember(const Member& me, const Pass& pass, KeysValues& cached, const Rows& keys_values) {
    const Shape& shape = pass.model.shape;
    for (int64_t head = me.first(shape.heads); head < me.last(shape.heads); head++)
        for (int64_t row = 0; row < keys_values.count; row++) {
            const float* key = keys_values.row(row) + head * shape.head_width;
            cached.write(shape, head, pass.start + row, key, key + shape.inner());
        }
}

// All rows of this member's heads. `length`: positions that every row sees; 0 where each sees those up to its own.
// `biased`: by how far a key lies from its query.
inline void attend_rows(const Member& me, const Pass& pass, KeysValues& cached, int64_t length, bool biased) {
    static thread_local std::vector<float> space;
    const Model& model = pass.model;
    const Shape& shape = model.shape;
    int64_t n = pass.x.count, growth = length > 0 ? 0 : 1;
    float* scores = grown(space, QUERIES * padded(length > 0 ? length : pass.start + n));
    for (int64_t head = me.first(shape.heads); head < me.last(shape.heads); head++)
        for (int64_t row = 0; row < n; row += QUERIES) {
            int64_t count = length > 0 ? length : pass.start + row + 1, at = head * shape.head_width;
            Queries rows{pass.projected.row(row) + at, pass.mixed.row(row) + at, pass.projected.stride,
                         pass.mixed.stride, count, growth};
            const float* bias = biased ? model.bias_of(head, pass.start + row) : nullptr;
            attend_some<QUERIES>((int)std::min<int64_t>(QUERIES, n - row), shape, cached, head, rows, bias, scores);
        }
}

inline void feed_inner(const Member& me, const Pass& pass, const Layer& layer) {
    static thread_local std::vector<float> space;
    Rows x = normed(pass, layer.feed_norm);
    project(me, layer.feed_in, x, pass.inner);
    int64_t first = me.first(layer.feed_in.panels), last = me.last(layer.feed_in.panels), width = (last - first) * LANES;
    bool gated = pass.model.shape.gated;
    float* gate = grown(space, x.count * width);
    if (gated) multiply(layer.feed_gate, first, last, x, gate, width);
    for (int64_t row = 0; row < x.count; row++) {
        float* inner = pass.inner.row(row) + first * LANES;
        for (int64_t i = 0; i < width; i += LANES) {
            Vector value = load(inner + i);
            store(inner + i, gated ? gelu(value) * load(gate + row * width + i) : (value < 0.0f ? Vector{} : value));
        }
    }
}

// `length`: see attend_rows.
inline void self_attention(const Member& me, const Pass& pass, const Layer& layer, KeysValues& own, int64_t length) {
    project(me, layer.qkv, normed(pass, layer.self_norm), pass.projected);
    me.wait();
    Rows keys_values{pass.projected.values + pass.model.shape.inner(), pass.x.count, pass.projected.stride};
    remember(me, pass, own, keys_values);
    attend_rows(me, pass, own, length, true);
    me.wait();
    add_projected(me, pass, layer.self_out, pass.mixed);
    me.wait();
}

inline void cross_attention(const Member& me, const Pass& pass, const Layer& layer, KeysValues& source,
                            int64_t length) {
    project(me, layer.cross_q, normed(pass, layer.cross_norm), pass.projected);
    me.wait();
    attend_rows(me, pass, source, length, false);
    me.wait();
    add_projected(me, pass, layer.cross_out, pass.mixed);
    me.wait();
}

inline void feed_forward(const Member& me, const Pass& pass, const Layer& layer) {
    feed_inner(me, pass, layer);
    me.wait();
    add_projected(me, pass, layer.feed_out, pass.inner);
    me.wait();
}

inline void run_decoder_layer(const Member& me, const Pass& pass, const Layer& layer, KeysValues& own,
                              KeysValues& source, int64_t source_length) {
    self_attention(me, pass, layer, own, 0);
    cross_attention(me, pass, layer, source, source_length);
    feed_forward(me, pass, layer);
}

// `own` is overwritten: whoever writes a head's keys and values is the only one who reads them.
inline void run_encoder_layer(const Member& me, const Pass& pass, const Layer& layer, KeysValues& own) {
    self_attention(me, pass, layer, own, pass.x.count);
    feed_forward(me, pass, layer);
}
