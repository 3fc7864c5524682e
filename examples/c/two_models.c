/* Two models inside of one C program: nothing is loaded, and nothing but the C library is needed.
 *
 *     cuvil compile digits.onnx --emit=static
 *     cuvil compile resnet18.onnx --emit=static
 *     cc two_models.c digits.a resnet18.a -o two_models
 *
 * The first runs on the caller's thread in memory that the program gives, as on a small system; the second on several
 * threads. (For threads, C libraries older than glibc 2.34 ask for -pthread.)
 */
#include "digits.h"
#include "resnet18.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, IMAGES = 2 };

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
    const cuvil_host* host = cuvil_threads(THREADS);
    if (resnet18_run_on(host, THREADS, &in, &out, NULL, NULL) != CUVIL_OK) {
        fprintf(stderr, "resnet18: %s\n", resnet18_error_message());
        return 1;
    }
    const float* scores = out.as.tensor.data;
    const int best = largest(scores, (int)out.as.tensor.shape[1]);
    printf("class %d, score %g\n", best, scores[best]);
    host->free(host, out.owner);
    return 0;
}

int main(void) { return show_digits() || show_resnet18(); }
