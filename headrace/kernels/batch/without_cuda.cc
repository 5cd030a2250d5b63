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
Result<void> launch(const Kernel&, void*) {
  return no_device_kernels();
}

template Result<void> launch(const BlurPictures&, void*);
template Result<void> launch(const ComposeTables&, void*);
template Result<void> launch(const CountValues&, void*);
template Result<void> launch(const FillBorders&, void*);
template Result<void> launch(const FloatBatch&, void*);
template Result<void> launch(const GatherRows&, void*);
template Result<void> launch(const MixRows&, void*);
template Result<void> launch(const PictureBatch&, void*);
template Result<void> launch(const MakeMeasuredTables&, void*);
template Result<void> launch(const MakeResizeTables&, void*);
template Result<void> launch(const ResampleColumns<SampleLayout::kWords>&, void*);
template Result<void> launch(const ResampleColumns<SampleLayout::kAny>&, void*);
template Result<void> launch(const ResampleRows<SampleLayout::kWords>&, void*);
template Result<void> launch(const ResampleRows<SampleLayout::kAny>&, void*);
template Result<void> launch(const RunPrograms&, void*);
template Result<void> launch(const SharpenPictures&, void*);
template Result<void> launch(const WarpPictures&, void*);

}  // namespace headrace
