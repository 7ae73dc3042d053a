/* Trains the cases on standard input with the C interface and writes their records to standard output.
 *
 * Whole numbers have 64 bits, reals 32, and an array comes after its length unless that is known. arm/cases.py writes
 * the cases and reads the records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paritylab.h"

static void* receive(int64_t count, size_t size) {
    void* data = malloc(count > 0 ? count * size : 1);
    if (data == NULL || fread(data, size, count, stdin) != (size_t)count) {
        fprintf(stderr, "driver: a case ends too early\n");
        exit(1);
    }
    return data;
}

static void send(const void* data, int64_t count, size_t size) { fwrite(data, size, count, stdout); }

static void refuse(const char* why) {
    fprintf(stderr, "driver: %s\n", why);
    exit(1);
}

static int64_t whole(void) {
    int64_t* number = receive(1, sizeof *number);
    const int64_t value = *number;
    free(number);
    return value;
}

static float single(void) {
    float* number = receive(1, sizeof *number);
    const float value = *number;
    free(number);
    return value;
}

static paritylab_floats floats(void) {
    const int64_t count = whole();
    const paritylab_floats all = {receive(count, sizeof(float)), count};
    return all;
}

/* Everything that is received stays until the end of the process. */
static paritylab_config receive_config(void) {
    paritylab_config c = {0};
    c.family = whole();
    c.inputs = whole();
    c.layers = whole();
    c.widths = receive(c.layers, sizeof(int32_t));
    c.bias = whole();
    c.activation = whole();
    c.activation_params = floats();
    c.loss = whole();
    c.loss_params = floats();
    c.batch = whole();
    c.schedule = floats();
    c.rates = floats();
    c.decay_coupled = single();
    c.decay_plain = single();
    c.sample = whole();
    c.replacement = whole();
    c.eval_every = whole();
    c.eval_size = whole();
    c.eval_fresh = whole();
    c.allowed_errors = whole();
    c.consecutive = whole();
    c.layout = whole();
    c.rule = whole();
    c.rule_params = floats();
    c.clip = single();
    c.decay_gradient = single();
    return c;
}

typedef struct {
    int64_t W, b, u;
} sizes;

static sizes sizes_of(const paritylab_config* c) {
    sizes s = {0, 0, c->widths[c->layers - 1]};
    for (int32_t l = 0; l < c->layers; ++l) {
        s.W += (int64_t)(l == 0 ? c->inputs : c->widths[l - 1]) * c->widths[l];
        s.b += c->widths[l];
    }
    return s;
}

static paritylab_weights receive_weights(sizes s) {
    paritylab_weights w;
    w.W = receive(s.W, sizeof(float));
    w.b = receive(s.b, sizeof(float));
    w.u = receive(s.u, sizeof(float));
    w.c = receive(1, sizeof(float));
    return w;
}

static void send_record(const paritylab_record* r, const paritylab_weights* w, sizes s) {
    const int64_t numbers[4] = {r->tag, r->status, r->t_c, r->steps};
    const double scores[2] = {r->accuracy, r->loss};
    send(numbers, 4, sizeof *numbers);
    send(scores, 2, sizeof *scores);
    send(w->W, s.W, sizeof(float));
    send(w->b, s.b, sizeof(float));
    send(w->u, s.u, sizeof(float));
    send(w->c, 1, sizeof(float));
}

static void train(void) {
    const paritylab_config config = receive_config();
    const char* why = paritylab_refusal(&config);
    if (why != NULL) refuse(why);
    paritylab_pool* pool = paritylab_start(&config, NULL);
    const sizes s = sizes_of(&config);
    paritylab_weights room = {NULL, NULL, NULL, NULL};
    const int64_t runs = whole();
    for (int64_t i = 0; i < runs; ++i) {
        paritylab_run run;
        run.tag = i;
        run.key[0] = (uint32_t)whole();
        run.key[1] = (uint32_t)whole();
        run.flip = (uint32_t)whole();
        run.max_steps = whole();
        run.lr = single();
        run.noise = single();
        run.mask = receive((config.inputs + 31) / 32, sizeof(uint32_t));
        run.start = receive_weights(s);
        why = paritylab_add(pool, &run);
        if (why != NULL) refuse(why);
        room = run.start; /* the pool has a copy: the last run's memory takes the results */
    }
    while (paritylab_advance(pool, 60.0) > 0) continue;
    paritylab_record record;
    while (paritylab_take(pool, &record, &room)) send_record(&record, &room, s);
    paritylab_end(pool);
}

int main(void) {
    fprintf(stderr, "%s\n", paritylab_isa(0));
    for (int64_t cases = whole(); cases > 0; --cases) train();
    return 0;
}
