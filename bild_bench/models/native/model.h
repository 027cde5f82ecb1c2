// What is kept between calls: an encoder's or a decoder's packed weights, a source's keys and values, a target's.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "matrix.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

struct Shape {
    int64_t layers, width, heads, head_width, feed_width, vocabulary, known_ids;  // known_ids: rows of the embedding
    int64_t gated;    // 1: gated GELU; 0: ReLU
    int64_t decoder;  // 1: with cross-attention and an output projection; 0: an encoder, vocabulary 0
    float epsilon, head_scale;

    int64_t inner() const { return heads * head_width; }
};

struct Layer {
    const float *self_norm, *cross_norm, *feed_norm;
    Matrix qkv, self_out, cross_q, cross_kv, cross_out, feed_in, feed_gate, feed_out;
};

// Keys and values of one layer. Keys lie in blocks of LANES positions, [block][head][dimension][position], so that
// scores of LANES positions are one vector; values are [position][head][dimension], dimensions padded.
struct KeysValues {
    std::vector<float> keys, values;

    void reserve(const Shape& shape, int64_t length) {
        size_t key_size = padded(length) * shape.inner(), value_size = length * shape.heads * padded(shape.head_width);
        // Growing by half as much again keeps growth rare.
        if (keys.size() < key_size) keys.resize(key_size + key_size / 2);
        if (values.size() < value_size) values.resize(value_size + value_size / 2);
    }

    float* key_block(const Shape& shape, int64_t head, int64_t position) {
        return keys.data() + (position / LANES * shape.heads + head) * shape.head_width * LANES;
    }

    float* value(const Shape& shape, int64_t head, int64_t position) {
        return values.data() + (position * shape.heads + head) * padded(shape.head_width);
    }

    void write(const Shape& shape, int64_t head, int64_t position, const float* key, const float* value_from) {
        float* block = key_block(shape, head, position) + position % LANES;
        for (int64_t d = 0; d < shape.head_width; d++) block[d * LANES] = key[d];
        std::memcpy(value(shape, head, position), value_from, shape.head_width * sizeof(float));
    }
};

struct Cache {
    int64_t length = 0;
    std::vector<KeysValues> layers;
};

// One block of memory for all weights, in large pages where the system has them.
class Arena {
public:
    explicit Arena(size_t floats) {
        size_t page = size_t(1) << 21, bytes = (floats * sizeof(float) + page) / page * page;
        start_ = static_cast<float*>(std::aligned_alloc(page, bytes));
        if (start_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
        madvise(start_, bytes, MADV_HUGEPAGE);
#endif
        next_ = start_;
    }
    ~Arena() { std::free(start_); }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    float* take(int64_t floats) {
        float* taken = next_;
        next_ += padded(floats);
        return taken;
    }

    Matrix matrix(const float* source, int64_t outputs, int64_t inputs) {
        float* target = take(packed_size(outputs, inputs));
        pack(source, outputs, inputs, target);
        return {target, inputs, padded(outputs) / LANES};
    }

    const float* vector(const float* source, int64_t count) {
        float* target = take(count);
        std::memset(target, 0, padded(count) * sizeof(float));
        std::memcpy(target, source, count * sizeof(float));
        return target;
    }

private:
    float *start_, *next_;
};

struct Model {
    Shape shape;
    Arena arena;
    const float* embedding;  // [known_ids, width], the caller's
    const float* final_norm;
    Matrix head;
    std::vector<Layer> layers;
    std::vector<float> bias;  // [heads][bias_stride]: of a key that lies i - bias_zero positions after its query
    int64_t bias_zero = 0, bias_stride = 0;

    explicit Model(const Shape& given) : shape(given), arena(weights_of(given)) { layers.reserve(given.layers); }

    // One value a key from position 0 on, for the query at this position.
    const float* bias_of(int64_t head, int64_t query) const {
        return bias.data() + head * bias_stride + bias_zero - query;
    }

    static size_t weights_of(const Shape& s) {
        size_t feed = (s.gated ? 2 : 1) * packed_size(s.feed_width, s.width) + packed_size(s.width, s.feed_width);
        size_t self = packed_size(3 * s.inner(), s.width) + packed_size(s.width, s.inner());
        size_t cross = packed_size(s.inner(), s.width) + packed_size(2 * s.inner(), s.width) +
                       packed_size(s.width, s.inner()) + padded(s.width);
        return s.layers * (self + (s.decoder ? cross : 0) + feed + 2 * padded(s.width)) +
               packed_size(s.vocabulary, s.width) + padded(s.width);
    }
};
