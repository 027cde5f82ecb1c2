// Vectors of the machine's width, by the compilers' vector extensions, and the functions of them that a T5 needs.
//
// Every function does its sums in one order that depends on the length alone, never on the number of rows or threads.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int64_t LANES = 16;
#elif defined(__AVX__)
constexpr int64_t LANES = 8;
#else
constexpr int64_t LANES = 4;
#endif

typedef float Vector __attribute__((vector_size(LANES * 4)));
typedef int32_t Integers __attribute__((vector_size(LANES * 4)));

inline int64_t padded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

inline Vector load(const float* at) {
    Vector value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

inline void store(float* at, Vector value) { std::memcpy(at, &value, sizeof value); }

inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

inline float sum_of(Vector value) {
    float sum = value[0];
    for (int64_t lane = 1; lane < LANES; lane++) sum += value[lane];
    return sum;
}

inline float largest_of(Vector value) {
    float best = value[0];
    for (int64_t lane = 1; lane < LANES; lane++) best = value[lane] > best ? value[lane] : best;
    return best;
}

// e^x to one unit in the last place or two: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cody and Waite 1980).
// Below -87 it is 0; NaN stays NaN, since every comparison with it is false.
inline Vector exponential(Vector x) {
    const float rounding = 12582912.0f;  // 1.5 * 2^23: adding it leaves no room for a fraction
    x = x > 88.0f ? (x - x) + 88.0f : x;
    Vector bounded = x < -87.0f ? (Vector{} - 87.0f) : x;
    Vector whole = (bounded * 1.44269504088896341f + rounding) - rounding;
    Vector rest = bounded - whole * 0.693359375f + whole * 2.12194440e-4f;
    Vector sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * (rest * rest) + rest + 1.0f;
    Integers power = (__builtin_convertvector(whole, Integers) + 127) << 23;
    Vector scale;
    std::memcpy(&scale, &power, sizeof scale);
    return x < -87.0f ? Vector{} : sum * scale;
}

// "gelu_new", x / 2 * (1 + tanh(u)), by way of (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)), which cancels no digits.
inline Vector gelu(Vector x) {
    Vector u = 0.7978845608028654f * (x + 0.044715f * (x * x * x));
    return x / (1.0f + exponential(-2.0f * u));
}

// Root-mean-square norm of `count` values; what pads x must be zero and stays so.
inline void normalise(const float* x, const float* weight, int64_t count, float epsilon, float scale, float* out) {
    Vector squares = {};
    for (int64_t i = 0; i < padded(count); i += LANES) squares += load(x + i) * load(x + i);
    float factor = scale / __builtin_sqrtf(sum_of(squares) / (float)count + epsilon);
    for (int64_t i = 0; i < padded(count); i += LANES) store(out + i, load(x + i) * factor * load(weight + i));
}

// Scores -> e^(score - best), in place; returns their sum. Lanes beyond `count` become 0.
inline float exponentiate(float* scores, int64_t count, float& best) {
    const float lowest = -__builtin_inff();
    for (int64_t i = count; i < padded(count); i++) scores[i] = lowest;
    Vector top = Vector{} + lowest;
    for (int64_t i = 0; i < count; i += LANES) top = larger(load(scores + i), top);
    best = largest_of(top);
    Vector sum = {};
    for (int64_t i = 0; i < count; i += LANES) {
        Vector value = exponential(load(scores + i) - best);
        store(scores + i, value);
        sum += value;
    }
    return sum_of(sum);
}
