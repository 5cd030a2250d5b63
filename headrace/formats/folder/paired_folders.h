// SPDX-License-Identifier: Apache-2.0
// Recognizes folders that hold the images of records, or their masks or labels, and so are not
// classes.
#pragma once

#include <string>
#include <vector>

namespace headrace {

// Throws Exception HR0419, with suggested code, if the names of some folders mean images and others
// masks or labels. `folders`: their names in `root`.
void refuse_paired_folders(const std::string& root, const std::vector<std::string>& folders);

// Code that opens a YOLO dataset (labels as text files) or VOC (.xml), given the folders of its
// images and of its labels or annotations.
std::string yolo_advice(std::string pictures, std::string labels);
std::string voc_advice(const std::string& pictures, const std::string& annotations);

}  // namespace headrace
