// SPDX-License-Identifier: Apache-2.0
// Folders that contain the pictures of records, and their masks or labels: these are not
// classes.
#pragma once

#include <string>
#include <vector>

namespace headrace {

// Throws Exception HR0419 where some of the folders are named for pictures and some for masks or
// labels; it says what to write. `folders`: their names in `root`.
void refuse_parts_of_records(const std::string& root, const std::vector<std::string>& folders);

// Code that opens a dataset of YOLO (labels as text files) or VOC (.xml), by the folders of
// its pictures and of its labels or annotations.
std::string yolo_advice(std::string pictures, std::string labels);
std::string voc_advice(const std::string& pictures, const std::string& annotations);

}  // namespace headrace
