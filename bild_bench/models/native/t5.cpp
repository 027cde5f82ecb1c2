// The T5 family's encoder and decoder for one text, as functions that Python calls; see session.py for what they mean there.
//
// The architecture is that of Raffel et al. 2020 (T5) and Xue et al. 2021 (mT5). All tensors are float32 and contiguous.
#include "head.h"
#include "limits.h"

namespace {

thread_local Space space;
thread_local KeysValues encoded;  // of the encoder's layer in hand

void enter(const Pass& pass, const float* states) {
    int64_t width = pass.model.shape.width;
    for (int64_t row = 0; row < pass.x.count; row++) {
        std::memset(pass.x.row(row), 0, pass.x.stride * sizeof(float));
        std::memcpy(pass.x.row(row), states + row * width, width * sizeof(float));
    }
}

void leave(const Pass& pass, float* states) {
    int64_t width = pass.model.shape.width;
    for (int64_t row = 0; row < pass.x.count; row++)
        std::memcpy(states + row * width, pass.x.row(row), width * sizeof(float));
}

}  // namespace

extern "C" {

// Bytes of weights are allocated at once; null where there is not that much memory. An encoder has no head.
Model* native_model(const Shape* shape, const float* embedding, const float* final_norm, const float* head) {
    try {
        Model* model = new Model(*shape);
        model->embedding = embedding;
        model->final_norm = model->arena.vector(final_norm, shape->width);
        if (shape->decoder) model->head = model->arena.matrix(head, shape->vocabulary, shape->width);
        return model;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Packs the next layer. tensors: self norm, qkv, self out, feed norm, feed in (the activated half first), feed out; and
// in a decoder cross norm, cross q, cross kv, cross out.
void native_add_layer(Model* model, const float* const* tensors) {
    const Shape& s = model->shape;
    Arena& arena = model->arena;
    Layer layer{};
    layer.self_norm = arena.vector(tensors[0], s.width);
    layer.qkv = arena.matrix(tensors[1], 3 * s.inner(), s.width);
    layer.self_out = arena.matrix(tensors[2], s.width, s.inner());
    layer.feed_norm = arena.vector(tensors[3], s.width);
    layer.feed_in = arena.matrix(tensors[4], s.feed_width, s.width);
    if (s.gated) layer.feed_gate = arena.matrix(tensors[4] + s.feed_width * s.width, s.feed_width, s.width);
    layer.feed_out = arena.matrix(tensors[5], s.width, s.feed_width);
    if (s.decoder) {
        layer.cross_norm = arena.vector(tensors[6], s.width);
        layer.cross_q = arena.matrix(tensors[7], s.inner(), s.width);
        layer.cross_kv = arena.matrix(tensors[8], 2 * s.inner(), s.width);
        layer.cross_out = arena.matrix(tensors[9], s.width, s.inner());
    }
    model->layers.push_back(layer);
}

void native_free_model(Model* model) { delete model; }

// The position bias [heads, count] of keys that lie -zero, 1 - zero, ... positions after their query.
void native_set_bias(Model* model, const float* bias, int64_t count, int64_t zero) {
    model->bias_zero = zero;
    model->bias_stride = count + LANES;
    model->bias.assign(model->shape.heads * model->bias_stride, 0.0f);
    for (int64_t head = 0; head < model->shape.heads; head++)
        std::memcpy(model->bias.data() + head * model->bias_stride, bias + head * count, count * sizeof(float));
}

Cache* native_cache(const Model* model) {
    Cache* cache = new Cache;
    cache->layers.resize(model->shape.layers);
    return cache;
}

void native_free_cache(Cache* cache) { delete cache; }

// Keys and values of a source for every layer, from the encoder's output [length, width].
Cache* native_source(Model* model, const float* states, int64_t length, int64_t threads) {
    Cache* cache = native_cache(model);
    cache->length = length;
    Pass pass(*model, space, length, 0);
    enter(pass, states);
    for (KeysValues& layer : cache->layers) layer.reserve(model->shape, length);
    run_team(threads, [&](const Member& me) {
        for (size_t index = 0; index < model->layers.size(); index++) {
            project(me, model->layers[index].cross_kv, pass.x, pass.projected);
            me.wait();
            remember(me, pass, cache->layers[index], pass.projected);
            me.wait();
        }
    });
    return cache;
}

// Ids -> states [n, width]; false where an id has no embedding.
bool native_embed(const Model* model, const int64_t* ids, int64_t n, float* states) {
    int64_t width = model->shape.width;
    for (int64_t row = 0; row < n; row++) {
        if (ids[row] < 0 || ids[row] >= model->shape.known_ids) return false;
        std::memcpy(states + row * width, model->embedding + ids[row] * width, width * sizeof(float));
    }
    return true;
}

// An encoder's states [n, width], from the embedded source to its output, in place. The bias must reach n - 1 positions
// to either side.
void native_encode(Model* model, float* states, int64_t n, int64_t threads) {
    const Shape& shape = model->shape;
    Pass pass(*model, space, n, 0);
    enter(pass, states);
    encoded.reserve(shape, n);
    KeysValues& own = encoded;  // a team's other threads have their own `encoded`
    run_team(threads, [&](const Member& me) {
        for (const Layer& layer : model->layers) run_encoder_layer(me, pass, layer, own);
        for (int64_t row = me.first(n); row < me.last(n); row++)
            normalise(pass.x.row(row), model->final_norm, shape.width, shape.epsilon, 1.0f, pass.x.row(row));
    });
    leave(pass, states);
}

// States [n, width] of positions start, start + 1, ... through layers from first to last, in place. The bias must reach
// position start + n.
void native_run_layers(Model* model, Cache* cache, Cache* source, float* states, int64_t n, int64_t start,
                       int64_t first, int64_t last, int64_t threads) {
    Pass pass(*model, space, n, start);
    enter(pass, states);
    for (int64_t index = first; index < last; index++) cache->layers[index].reserve(model->shape, start + n);
    run_team(threads, [&](const Member& me) {
        for (int64_t index = first; index < last; index++)
            run_decoder_layer(me, pass, model->layers[index], cache->layers[index], source->layers[index], source->length);
    });
    leave(pass, states);
}

// Keys and values of layers that the states do not go through, projected from those states.
void native_fill(Model* model, Cache* cache, const float* states, int64_t n, int64_t start, int64_t first,
                 int64_t last) {
    Pass pass(*model, space, n, start);
    enter(pass, states);
    Member alone{0, 1, nullptr};
    int64_t inner = model->shape.inner();
    for (int64_t index = first; index < last; index++) {
        cache->layers[index].reserve(model->shape, start + n);
        project(alone, model->layers[index].qkv, normed(pass, model->layers[index].self_norm), pass.projected);
        remember(alone, pass, cache->layers[index], {pass.projected.values + inner, n, pass.projected.stride});
    }
}

// States [n, width] -> logits [n, vocabulary], the best ids and their log probabilities.
void native_score(Model* model, const float* states, int64_t n, int64_t threads, float* logits, int64_t* ids,
                  float* logprobs) {
    score_rows(*model, states, n, threads, {logits, ids, logprobs});
}

// All of an array read once. The result is of no use but to keep compilers from leaving the reading out.
float native_read(const float* values, int64_t count, int64_t threads) {
    std::atomic<float> seen{0.0f};
    run_team(threads, [&](const Member& me) { seen = read_share(me, values, count); });
    return seen;
}

// Products out of the caches, so many for each thread; returns the FLOPs of all.
int64_t native_multiply(int64_t repeats, int64_t threads) {
    std::atomic<float> seen{0.0f};
    int64_t count = repeats * threads;
    run_team(threads, [&](const Member& me) { seen = multiply_share(me, count); });
    return count * 2 * ROWS * LIMIT_INPUTS * LIMIT_OUTPUTS;
}

// Since the process began: calls that were to be done by several threads, and those among them that had to do without
// one, or to wait for one.
void native_team_counts(int64_t* calls, int64_t* late) {
    *calls = team_counts.calls.load(std::memory_order_relaxed);
    *late = team_counts.late.load(std::memory_order_relaxed);
}
}
