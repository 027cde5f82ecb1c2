// Attention of one head: scores, softmax, mixture, for a few rows at a time that share the loads of keys and values.
// Sums over positions and dimensions keep one order each, whatever the number of rows.
#pragma once

#include "model.h"

constexpr int QUERIES = 4;  // rows at a time

// Rows of one head. Row r reads the first `counts` + r * `growth` positions.
struct Queries {
    const float* query;  // row 0; the next is `stride` further on
    float* out;          // likewise
    int64_t stride, out_stride;
    int64_t count, growth;

    int64_t count_of(int r) const { return count + r * growth; }
};

// Scores of B blocks of LANES positions from `position` on; row r's go to scores + r * scores_stride.
template <int R, int B>
inline void score_blocks(const Shape& shape, KeysValues& cached, int64_t head, const Queries& rows, int64_t position,
                         float* scores, int64_t scores_stride) {
    const float* blocks[B];
    for (int b = 0; b < B; b++) blocks[b] = cached.key_block(shape, head, position + b * LANES);
    Vector sums[R][B] = {};
    for (int64_t d = 0; d < shape.head_width; d++)
        for (int b = 0; b < B; b++)
            for (int r = 0; r < R; r++)
                sums[r][b] = fused(every(rows.query[r * rows.stride + d]), load(blocks[b] + d * LANES), sums[r][b]);
    for (int r = 0; r < R; r++)
        for (int b = 0; b < B; b++) store(scores + r * scores_stride + position + b * LANES, sums[r][b]);
}

// Out = sum over positions of weight * value, for P vectors of dimensions.
template <int R, int P>
inline void mix(const float* values, int64_t stride, const Queries& rows, const float* weights, int64_t weights_stride,
                Vector (&sums)[R][P]) {
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) sums[r][p] = Vector{};
    auto add = [&](int r, int64_t position) {
        Vector weight = every(weights[r * weights_stride + position]);
        for (int p = 0; p < P; p++) sums[r][p] = fused(weight, load(values + position * stride + p * LANES), sums[r][p]);
    };
    for (int64_t position = 0; position < rows.count; position++)
        for (int r = 0; r < R; r++) add(r, position);
    for (int r = 1; r < R; r++)
        for (int64_t position = rows.count; position < rows.count_of(r); position++) add(r, position);
}

template <int R, int P>
inline void mix_part(const float* values, int64_t stride, const Queries& rows, const float* weights,
                     int64_t weights_stride, const float* factors, float* out, int64_t width) {
    Vector sums[R][P];
    mix<R, P>(values, stride, rows, weights, weights_stride, sums);
    for (int r = 0; r < R; r++) {
        float mixed[P * LANES], *to = width == P * LANES ? out + r * rows.out_stride : mixed;
        for (int p = 0; p < P; p++) store(to + p * LANES, sums[r][p] * factors[r]);
        if (to == mixed) std::memcpy(out + r * rows.out_stride, mixed, width * sizeof(float));
    }
}

// R rows. `bias` is null, or holds a value a position for row 0; for each next row it begins one value earlier.
// `scores`: R times padded(most positions) floats, zeroed or not.
template <int R>
inline void attend(const Shape& shape, KeysValues& cached, int64_t head, const Queries& rows, const float* bias,
                   float* scores) {
    int64_t stride = padded(rows.count_of(R - 1)), position = 0;
    for (; position + 2 * LANES <= stride; position += 2 * LANES)
        score_blocks<R, 2>(shape, cached, head, rows, position, scores, stride);
    for (; position < stride; position += LANES)
        score_blocks<R, 1>(shape, cached, head, rows, position, scores, stride);
    float factors[R];
    for (int r = 0; r < R; r++) {
        float *row = scores + r * stride, best;
        if (bias != nullptr)
            for (int64_t i = 0; i < rows.count_of(r); i += LANES) store(row + i, load(row + i) + load(bias - r + i));
        factors[r] = 1.0f / exponentiate(row, rows.count_of(r), best);
    }
    int64_t width = shape.head_width, values_stride = shape.heads * padded(width);
    const float* values = cached.value(shape, head, 0);
    for (int64_t at = 0; at < width; at += 2 * LANES) {
        int64_t left = width - at;
        if (left > LANES)
            mix_part<R, 2>(values + at, values_stride, rows, scores, stride, factors, rows.out + at,
                           left < 2 * LANES ? left : 2 * LANES);
        else
            mix_part<R, 1>(values + at, values_stride, rows, scores, stride, factors, rows.out + at, left);
    }
}

template <int R>
inline void attend_some(int count, const Shape& shape, KeysValues& cached, int64_t head, const Queries& rows,
                        const float* bias, float* scores) {
    if (count == R) return attend<R>(shape, cached, head, rows, bias, scores);
    if constexpr (R > 1) attend_some<R - 1>(count, shape, cached, head, rows, bias, scores);
}
