// Products of a few rows with a matrix whose weights are read once, in the order in which they lie in memory.
//
// A matrix of [outputs, inputs] is packed in panels of LANES outputs, [panel][input][lane]. Each output is one sum over
// the inputs in their order, whatever the number of rows, so one row and a block of rows agree bit for bit.
#pragma once

#include "vectors.h"

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int ROWS = 8;  // 8 x 3 sums, 3 vectors of weights and a value of x fill 32 registers
#else
constexpr int ROWS = 4;  // and 4 x 3 sums fill 16
#endif
constexpr int PANELS = 3;
constexpr int64_t AHEAD = 32;         // inputs whose weights are fetched before they are needed
constexpr int64_t CACHED_INPUTS = 512;  // of PANELS panels: what stays in the second-level cache for further rows

struct Matrix {
    const float* weights = nullptr;
    int64_t inputs = 0, panels = 0;

    int64_t width() const { return panels * LANES; }
};

// Rows of values: `values` + row * `stride`.
struct Rows {
    float* values;
    int64_t count, stride;

    float* row(int64_t index) const { return values + index * stride; }
};

inline int64_t packed_size(int64_t outputs, int64_t inputs) { return padded(outputs) * inputs; }

inline void pack(const float* source, int64_t outputs, int64_t inputs, float* target) {
    for (int64_t panel = 0; panel < padded(outputs); panel += LANES)
        for (int64_t k = 0; k < inputs; k++)
            for (int64_t lane = 0; lane < LANES; lane++)
                *target++ = panel + lane < outputs ? source[(panel + lane) * inputs + k] : 0.0f;
}

template <int R, int P>
inline void tile(const float* weights, int64_t inputs, int64_t from, int64_t to, const float* x, int64_t x_stride,
                 float* y, int64_t y_stride) {
    Vector sums[R][P];
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) sums[r][p] = from == 0 ? Vector{} : load(y + r * y_stride + p * LANES);
    for (int64_t k = from; k < to; k++) {
        Vector column[P];
        for (int p = 0; p < P; p++) {
            const float* at = weights + (p * inputs + k) * LANES;
            __builtin_prefetch(at + AHEAD * LANES);
            column[p] = held(load(at));
        }
        for (int r = 0; r < R; r++)
            for (int p = 0; p < P; p++) sums[r][p] = fused(every(x[r * x_stride + k]), column[p], sums[r][p]);
    }
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) store(y + r * y_stride + p * LANES, sums[r][p]);
}

template <int R, int P>
inline void tile_of(int rows, const float* weights, int64_t inputs, int64_t from, int64_t to, const float* x,
                    int64_t x_stride, float* y, int64_t y_stride) {
    if (rows == R) return tile<R, P>(weights, inputs, from, to, x, x_stride, y, y_stride);
    if constexpr (R > 1) tile_of<R - 1, P>(rows, weights, inputs, from, to, x, x_stride, y, y_stride);
}

template <int P>
inline void panels_of(const Matrix& matrix, int64_t panel, const Rows& x, float* y, int64_t y_stride) {
    const float* weights = matrix.weights + panel * matrix.inputs * LANES;
    int64_t tiles = (x.count + ROWS - 1) / ROWS;
    for (int64_t from = 0; from < matrix.inputs; from += CACHED_INPUTS) {
        int64_t to = from + CACHED_INPUTS < matrix.inputs ? from + CACHED_INPUTS : matrix.inputs;
        for (int64_t t = 0; t < tiles; t++) {
            int64_t row = x.count * t / tiles, rows = x.count * (t + 1) / tiles - row;
            tile_of<ROWS, P>((int)rows, weights, matrix.inputs, from, to, x.row(row), x.stride, y + row * y_stride,
                             y_stride);
        }
    }
}

// Panels first to last of the product, written to y, whose first column is that of panel `first`.
inline void multiply(const Matrix& matrix, int64_t first, int64_t last, const Rows& x, float* y, int64_t y_stride) {
    for (int64_t panel = first; panel < last; panel += PANELS, y += PANELS * LANES) {
        switch (last - panel) {
            case 1: panels_of<1>(matrix, panel, x, y, y_stride); break;
            case 2: panels_of<2>(matrix, panel, x, y, y_stride); break;
            default: panels_of<PANELS>(matrix, panel, x, y, y_stride);
        }
    }
}
