// Trains the cases on standard input with the C interface and writes their records to standard output. arm/cases.py
// writes the cases, in the form of native/message.h, and reads the records.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "message.h"

using namespace paritylab;

namespace {

[[noreturn]] void refuse(const char* why) {
    std::fprintf(stderr, "driver: %s\n", why);
    std::exit(1);
}

std::vector<uint64_t> everything() {
    std::vector<uint64_t> all;
    uint64_t block[4096];
    while (const size_t count = std::fread(block, sizeof *block, std::size(block), stdin)) all.insert(all.end(), block, block + count);
    return all;
}

template <class T>
void send(const T* data, int64_t count) {
    std::fwrite(data, sizeof(T), count, stdout);
}

struct Sizes {
    int64_t W = 0, b = 0, u = 0;

    explicit Sizes(const paritylab_config& c) : u(c.widths[c.layers - 1]) {
        for (int32_t l = 0; l < c.layers; ++l) {
            W += int64_t{l == 0 ? c.inputs : c.widths[l - 1]} * c.widths[l];
            b += c.widths[l];
        }
    }
};

void train(Reader& reader) {
    Message message;
    message.read(reader);
    const paritylab_config& config = message.config;
    if (!reader.good()) refuse("a case ends too early");
    if (const char* why = paritylab_refusal(&config)) refuse(why);
    paritylab_pool* pool = paritylab_start(&config, nullptr);
    const Sizes sizes(config);
    std::vector<float> W(sizes.W), b(sizes.b), u(sizes.u), c(1);
    const int64_t runs = reader.whole();
    for (int64_t i = 0; i < runs; ++i) {
        paritylab_run run{};
        run.tag = i;
        run.key[0] = static_cast<uint32_t>(reader.whole());
        run.key[1] = static_cast<uint32_t>(reader.whole());
        run.flip = static_cast<uint32_t>(reader.whole());
        run.max_steps = reader.whole();
        run.lr = reader.real();
        run.noise = reader.real();
        run.mask = reader.words((config.inputs + 31) / 32);
        const auto read = [&](std::vector<float>& to) {
            const float* from = reader.floats(static_cast<int64_t>(to.size()));
            if (from == nullptr) refuse("a case ends too early");
            to.assign(from, from + to.size());
            return to.data();
        };
        run.start = {read(W), read(b), read(u), read(c)};
        if (const char* why = paritylab_add(pool, &run)) refuse(why);
    }
    while (paritylab_advance(pool, 60.0) > 0) continue;
    const paritylab_weights room{W.data(), b.data(), u.data(), c.data()};
    paritylab_record record;
    while (paritylab_take(pool, &record, &room)) {
        const int64_t numbers[] = {record.tag, record.status, record.t_c, record.steps};
        const double scores[] = {record.accuracy, record.loss};
        send(numbers, 4), send(scores, 2);
        send(W.data(), sizes.W), send(b.data(), sizes.b), send(u.data(), sizes.u), send(c.data(), 1);
    }
    paritylab_end(pool);
}

}  // namespace

int main() {
    std::fprintf(stderr, "%s\n", paritylab_isa(0));
    const std::vector<uint64_t> all = everything();
    Reader reader(all.data(), 8 * int64_t(all.size()));
    for (int64_t cases = reader.whole(); cases > 0; --cases) train(reader);
    return 0;
}
