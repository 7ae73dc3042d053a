// What the site's worker calls: runs of one configuration, trained in step.
//
// A web_session is one configuration with many pools, each of one group, so that all runs can be given the same number of
// steps in turn; runs move together when others are done. Compiled to WebAssembly alone.
#include <memory>
#include <vector>

#include "message.h"
#include "simd.h"
#include "threefry.h"

using namespace paritylab;

// What the library calls where it would end the process: its own prints first, and all of printf with it.
_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

#define WEB_API extern "C" __attribute__((visibility("default")))

namespace {

struct EndPool {
    void operator()(paritylab_pool* pool) const { paritylab_end(pool); }
};

struct Session {
    std::vector<uint64_t> bytes;  // what the message points into
    Message message;
    paritylab_law law{};
    paritylab_run run{};  // what all have in common
    uint32_t seed = 0;
    int64_t fixed = -1;  // the number of the start that all runs share
    std::vector<std::unique_ptr<paritylab_pool, EndPool>> pools;
    std::vector<float> weights;  // W, b, u, c
    int64_t W = 0, b = 0, u = 0;

    paritylab_weights room() { return {&weights[0], &weights[W], &weights[W + b], &weights[W + b + u]}; }
};

std::unique_ptr<Session> session;
constexpr uint32_t START = 0;  // the stream of initial params

}  // namespace

// Room for a message of so many bytes; what was there before is given up.
WEB_API void* web_room(int32_t bytes) {
    session = std::make_unique<Session>();
    session->bytes.resize((bytes + 7) / 8);
    return session->bytes.data();
}

// Reads the message: a configuration, a law, what runs have in common. Null, or why it is refused.
WEB_API const char* web_open() {
    Session& s = *session;
    Reader r(s.bytes.data(), 8 * int64_t(s.bytes.size()));
    s.message.read(r);
    s.law = read_law(r);
    s.fixed = r.whole();
    s.seed = static_cast<uint32_t>(r.whole());
    s.run.lr = r.real();
    s.run.noise = r.real();
    s.run.flip = static_cast<uint32_t>(r.whole());
    s.run.max_steps = r.whole();
    const paritylab_words mask = r.words();
    const paritylab_config& config = s.message.config;
    if (!r.good() || mask.count != (config.inputs + 31) / 32) return "message: it ends too early";
    if (const char* why = paritylab_refusal(&config)) return why;
    s.run.mask = mask.data;
    s.u = config.widths[config.layers - 1];
    for (int32_t l = 0; l < config.layers; ++l) {
        s.W += int64_t{l == 0 ? config.inputs : config.widths[l - 1]} * config.widths[l];
        s.b += config.widths[l];
    }
    s.weights.resize(s.W + s.b + s.u + 1);
    return nullptr;
}

WEB_API void web_pools(int32_t count) {
    while (int32_t(session->pools.size()) < count) session->pools.emplace_back(paritylab_start(&session->message.config, nullptr));
}

// Of each pool, once there is one.
WEB_API int32_t web_slots() { return paritylab_slots(session->pools[0].get()); }

// Adds the run of this number; null, or why it is refused.
WEB_API const char* web_add(int32_t pool, uint32_t number) {
    Session& s = *session;
    const Key<uint32_t> key = fold_in(Key<uint32_t>{0, s.seed}, number);
    const Key<uint32_t> own = fold_in(key, START);
    const uint32_t start[] = {s.fixed < 0 ? own.a : 0, s.fixed < 0 ? own.b : static_cast<uint32_t>(s.fixed)};
    const paritylab_weights room = s.room();
    if (const char* why = paritylab_draw(s.pools[pool].get(), &s.law, start, &room)) return why;
    paritylab_run run = s.run;
    run.tag = number;
    run.key[0] = key.a, run.key[1] = key.b;
    run.start = room;
    return paritylab_add(s.pools[pool].get(), &run);
}

// Gives the runs of a pool so many steps; says how many are not done.
WEB_API int32_t web_train(int32_t pool, int32_t steps) {
    return static_cast<int32_t>(paritylab_train(session->pools[pool].get(), steps));
}

// Moves a run from one pool to another that has room; its number, or -1.
WEB_API int32_t web_move(int32_t from, int32_t to) {
    return static_cast<int32_t>(paritylab_move(session->pools[from].get(), session->pools[to].get()));
}

// A run of this pool that is done, with its final weights; 0 when there is none.
WEB_API int32_t web_take(int32_t pool, paritylab_record* record) {
    const paritylab_weights room = session->room();
    return paritylab_take(session->pools[pool].get(), record, &room);
}

WEB_API int32_t web_survey(int32_t pool, int32_t examples, int32_t of_sample, paritylab_record* records) {
    return paritylab_survey(session->pools[pool].get(), examples, of_sample, records);
}

// Looks at a run; says how many steps it has made, or -1. Its weights are at web_weights then.
WEB_API int32_t web_look(int32_t pool, uint32_t number) {
    const paritylab_weights room = session->room();
    return static_cast<int32_t>(paritylab_look(session->pools[pool].get(), number, &room));
}

WEB_API float* web_weights() { return session->weights.data(); }

// Room for the 16 records of a survey.
WEB_API paritylab_record* web_records() {
    static paritylab_record records[16];
    return records;
}

// Whether multiply-adds round once, as on the machines that have such an instruction: then records are theirs.
WEB_API int32_t web_fuses() {
    using namespace paritylab::PARITYLAB_ISA;
    volatile float near = 1 + 0x1p-12f, square = 1 + 0x1p-11f;  // near^2 = square + 2^-24
    return fma(broadcast(near), broadcast(near), broadcast(-square))[0] != 0;
}
