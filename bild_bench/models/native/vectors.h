// Vectors of the machine's width, by the compilers' vector extensions, and the functions of them that a T5 needs.
//
// Every function does its sums in one order that depends on the length alone, never on the number of rows or threads.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

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

// Kept in a register: compilers may else read a value again at each use, and reads are what a short product waits for.
inline Vector held(Vector value) {
#if defined(__AVX512F__)
    asm("" : "+v"(value));
#elif defined(__x86_64__)
    asm("" : "+x"(value));
#elif defined(__aarch64__)
    asm("" : "+w"(value));
#endif
    return value;
}

inline Vector every(float value) { return value - Vector{}; }

// a * b + c, rounded once where the machine can. Compilers are told to join no other product with a sum: they would do so
// in one shape of a loop and not in another, and a block of rows would no longer be what each row is alone.
inline Vector fused(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (Vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

inline Vector fused(Vector a, float b, float c) { return fused(a, every(b), every(c)); }

inline void store(float* at, Vector value) { std::memcpy(at, &value, sizeof value); }

inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

template <int64_t N>
struct Lanes {
    typedef float Type __attribute__((vector_size(N * 4)));
};

// All lanes together, halves with halves.
template <int64_t N, typename Join>
inline float reduced(typename Lanes<N>::Type value, const Join& join) {
    if constexpr (N == 2) {
        return join(value[0], value[1]);
    } else {
        typename Lanes<N / 2>::Type low, high;
        std::memcpy(&low, &value, sizeof low);
        std::memcpy(&high, reinterpret_cast<const char*>(&value) + sizeof low, sizeof high);
        return reduced<N / 2>(join(low, high), join);
    }
}

inline float sum_of(Vector value) {
    return reduced<LANES>(value, [](auto a, auto b) { return a + b; });
}

inline float largest_of(Vector value) {
    return reduced<LANES>(value, [](auto a, auto b) { return a > b ? a : b; });
}

// 0, 1, 2, ...
inline Integers lane_numbers() {
    Integers numbers;
    for (int32_t lane = 0; lane < LANES; lane++) numbers[lane] = lane;
    return numbers;
}

// e^x to one unit in the last place or two: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cody and Waite 1980).
// Below -87 it is 0; NaN stays NaN, since every comparison with it is false.
inline Vector exponential(Vector x) {
    const float rounding = 12582912.0f;  // 1.5 * 2^23: adding it leaves no room for a fraction
    x = x > 88.0f ? (x - x) + 88.0f : x;
    Vector bounded = x < -87.0f ? (Vector{} - 87.0f) : x;
    Vector whole = fused(bounded, 1.44269504088896341f, rounding) - rounding;
    Vector rest = fused(whole, every(2.12194440e-4f), fused(whole, every(-0.693359375f), bounded));
    Vector sum = fused(rest, 1.9875691500e-4f, 1.3981999507e-3f);
    for (float next : {8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        sum = fused(sum, rest, every(next));
    sum = fused(sum, rest * rest, rest) + 1.0f;
    Integers power = (__builtin_convertvector(whole, Integers) + 127) << 23;
    Vector scale;
    std::memcpy(&scale, &power, sizeof scale);
    return x < -87.0f ? Vector{} : sum * scale;
}

// "gelu_new", x / 2 * (1 + tanh(u)), by way of (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)), which cancels no digits.
inline Vector gelu(Vector x) {
    Vector u = 0.7978845608028654f * fused(x * x * x, every(0.044715f), x);
    return x / (1.0f + exponential(-2.0f * u));
}

// Root-mean-square norm of `count` values; what pads x must be zero and stays so.
inline void normalise(const float* x, const float* weight, int64_t count, float epsilon, float scale, float* out) {
    Vector squares = {};
    for (int64_t i = 0; i < padded(count); i += LANES) squares = fused(load(x + i), load(x + i), squares);
    float factor = scale / __builtin_sqrtf(sum_of(squares) / (float)count + epsilon);
    for (int64_t i = 0; i < padded(count); i += LANES) store(out + i, load(x + i) * factor * load(weight + i));
}

// Scores -> e^(score - best), in place; returns their sum. Lanes beyond `count` become 0.
inline float exponentiate(float* scores, int64_t count, float& best) {
    const Vector lowest = Vector{} - __builtin_inff();
    int64_t last = padded(count) - LANES;
    // What pads the last vector must neither win nor count.
    store(scores + last, lane_numbers() < (int32_t)(count - last) ? load(scores + last) : lowest);
    Vector top = lowest;
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
