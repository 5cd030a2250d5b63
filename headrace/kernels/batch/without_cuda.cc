// SPDX-License-Identifier: Apache-2.0
// The launches of a build without nvcc, instead of all .cu files. A kernel that is missing here
// fails to link.
#include "headrace/kernels/batch/blur_pictures.h"
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/fill_borders.h"
#include "headrace/kernels/batch/float_batch.h"
#include "headrace/kernels/batch/gather_rows.h"
#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/batch/measure_images.h"
#include "headrace/kernels/batch/mix_rows.h"
#include "headrace/kernels/batch/picture_batch.h"
#include "headrace/kernels/batch/resample_columns.h"
#include "headrace/kernels/batch/resample_rows.h"
#include "headrace/kernels/batch/resize_axis.h"
#include "headrace/kernels/batch/run_programs.h"
#include "headrace/kernels/batch/sharpen_pictures.h"
#include "headrace/kernels/batch/warp_pictures.h"

namespace headrace {

template <class Kernel>
LaunchStatus launch(const Kernel&, void*) {
  return {.has_kernels = false};
}

template LaunchStatus launch(const BlurPictures&, void*);
template LaunchStatus launch(const ComposeTables&, void*);
template LaunchStatus launch(const CountValues&, void*);
template LaunchStatus launch(const FillBorders&, void*);
template LaunchStatus launch(const FloatBatch&, void*);
template LaunchStatus launch(const GatherRows&, void*);
template LaunchStatus launch(const MixRows&, void*);
template LaunchStatus launch(const PictureBatch&, void*);
template LaunchStatus launch(const MakeMeasuredTables&, void*);
template LaunchStatus launch(const MakeResizeTables&, void*);
template LaunchStatus launch(const ResampleColumns<SampleLayout::kWords>&, void*);
template LaunchStatus launch(const ResampleColumns<SampleLayout::kAny>&, void*);
template LaunchStatus launch(const ResampleRows<SampleLayout::kWords>&, void*);
template LaunchStatus launch(const ResampleRows<SampleLayout::kAny>&, void*);
template LaunchStatus launch(const RunPrograms&, void*);
template LaunchStatus launch(const SharpenPictures&, void*);
template LaunchStatus launch(const WarpPictures&, void*);

}  // namespace headrace
