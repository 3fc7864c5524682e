#pragma once
// Which of many overlapping boxes stay.
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

struct Box {
    f32 top, left, bottom, right;

    INLINE f32 area() const { return (bottom - top) * (right - left); }
};

// Box i of a list, given by two opposite corners (y, x), or by its centre, width and height.
INLINE Box box_at(const f32* boxes, i64 i, bool is_centered) {
    const f32* b = boxes + i * 4;
    if (is_centered) {
        return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    }
    return {minimum(b[0], b[2]), minimum(b[1], b[3]), maximum(b[0], b[2]), maximum(b[1], b[3])};
}

// Intersection over union above the threshold.
INLINE bool overlaps(const Box& a, const Box& b, f32 threshold) {
    const f32 height = maximum(minimum(a.bottom, b.bottom) - maximum(a.top, b.top), 0.0f);
    const f32 width = maximum(minimum(a.right, b.right) - maximum(a.left, b.left), 0.0f);
    const f32 common = height * width;
    const f32 all = a.area() + b.area() - common;
    return all > 0 && common / all > threshold;
}

// The n boxes in order, best first: one stays if its score is above score_threshold, it overlaps none that stayed
// before it, and fewer than `most` have. keep[j] says so of the j-th in order.
INLINE void suppress_overlaps(i64 n, const f32* boxes, bool is_centered, const f32* scores, const i64* order, i64 most,
                              f32 iou_threshold, bool has_score_threshold, f32 score_threshold, bool* keep) {
    i64 kept = 0;
    for (i64 j = 0; j < n; j++) {
        bool stays = kept < most && (!has_score_threshold || scores[order[j]] > score_threshold);
        const Box box = box_at(boxes, order[j], is_centered);
        for (i64 i = 0; i < j && stays; i++) {
            stays = !(keep[i] && overlaps(box, box_at(boxes, order[i], is_centered), iou_threshold));
        }
        keep[j] = stays;
        kept += stays;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
