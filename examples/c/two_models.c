/* Two models inside of one C program: nothing is loaded, and nothing but the C library is needed.
 *
 *     cuvil compile digits.onnx --emit=static
 *     cuvil compile resnet18.onnx --emit=static
 *     cc two_models.c digits.a resnet18.a -pthread -o two_models
 *
 * The first runs on the caller's thread in memory that the program gives, as on a small system; the second on threads
 * of the program. Without threads of your own -pthread is not needed.
 */
#include "digits.h"
#include "resnet18.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, IMAGES = 2 };

/* ---- A host with threads: what the models call */

typedef struct {
    int64_t items, *next; /* the next item that nobody has begun */
    void (*run)(void*, int64_t, int32_t);
    void* context;
    int32_t worker;
} work;

static void* work_on(void* pointer) {
    const work* w = pointer;
    for (int64_t i; (i = __atomic_fetch_add(w->next, 1, __ATOMIC_RELAXED)) < w->items;)
        w->run(w->context, i, w->worker);
    return NULL;
}

/* Starts threads for each step of the model, which is simple; a program in a hurry keeps them waiting for the next. */
static void run_each(const cuvil_host* host, int64_t n, void (*run)(void*, int64_t, int32_t), void* context) {
    (void)host;
    pthread_t threads[THREADS];
    work each[THREADS];
    int64_t next = 0;
    int started[THREADS] = {0};
    for (int32_t i = 0; i < THREADS; i++) {
        const work w = {n, &next, run, context, i};
        each[i] = w;
        if (i > 0) started[i] = pthread_create(&threads[i], NULL, work_on, &each[i]) == 0;
    }
    work_on(&each[0]); /* this thread takes part, and suffices where no other starts */
    for (int32_t i = 1; i < THREADS; i++)
        if (started[i]) pthread_join(threads[i], NULL);
}

static void* host_alloc(const cuvil_host* host, uint64_t bytes) {
    (void)host;
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

static void host_free(const cuvil_host* host, void* block) {
    (void)host;
    free(block);
}

/* ---- The models */

static int largest(const float* values, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (values[i] > values[best]) best = i;
    return best;
}

static int show_digits(void) {
    static float images[IMAGES][64], scores[IMAGES][10]; /* the sizes that are open are the first parameters */
    for (int i = 0; i < 64; i++) images[1][i] = i % 8 == 3 || i % 8 == 4 ? 1 : 0; /* an upright line */
    void* workspace = malloc(digits_workspace_size(IMAGES));
    const int32_t status = digits_run(IMAGES, images[0], scores[0], workspace);
    free(workspace);
    if (status != CUVIL_OK) {
        fprintf(stderr, "digits: %s\n", digits_error_message());
        return 1;
    }
    for (int i = 0; i < IMAGES; i++)
        printf("digit %d, score %g\n", largest(scores[i], 10), scores[i][largest(scores[i], 10)]);
    return 0;
}

static int show_resnet18(void) {
    static float image[resnet18_input_COUNT];
    for (int i = 0; i < resnet18_input_COUNT; i++) image[i] = (float)(i % 255) / 255;
    int64_t shape[] = {1, 3, 224, 224};
    cuvil_value in, out;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out); /* CUVIL_NONE: the model allocates */
    const cuvil_tensor tensor = {image, 1, 0, 4, {2, 32, 1}, shape, NULL, 0};
    in.tag = CUVIL_TENSOR;
    in.as.tensor = tensor;
    const cuvil_host host = {sizeof host, run_each, host_alloc, host_free, NULL, NULL, NULL};
    if (resnet18_run_on(&host, THREADS, &in, &out, NULL, NULL) != CUVIL_OK) {
        fprintf(stderr, "resnet18: %s\n", resnet18_error_message());
        return 1;
    }
    const float* scores = out.as.tensor.data;
    const int best = largest(scores, (int)out.as.tensor.shape[1]);
    printf("class %d, score %g\n", best, scores[best]);
    host_free(&host, out.owner);
    return 0;
}

int main(void) { return show_digits() || show_resnet18(); }
