// SPDX-License-Identifier: Apache-2.0
// The tables of timm's policies, in timm's order. Used only by timm_policy.cc.
#pragma once

#include "headrace/ops/policies/timm_policy.h"

namespace headrace {

namespace timm {
using Kind = TimmStep::Kind;

// The policies "v0r" and "originalr" use kPosterizeIncreasing for all posterizing.
inline constexpr TimmStep kV0[] = {
    {Kind::kEqualize, 0.8, 1},  {Kind::kShearY, 0.8, 4},       {Kind::kColor, 0.4, 9},
    {Kind::kEqualize, 0.6, 3},  {Kind::kColor, 0.4, 1},        {Kind::kRotate, 0.6, 8},
    {Kind::kSolarize, 0.8, 3},  {Kind::kEqualize, 0.4, 7},     {Kind::kSolarize, 0.4, 2},
    {Kind::kSolarize, 0.6, 2},  {Kind::kColor, 0.2, 0},        {Kind::kEqualize, 0.8, 8},
    {Kind::kEqualize, 0.4, 8},  {Kind::kSolarizeAdd, 0.8, 3},  {Kind::kShearX, 0.2, 9},
    {Kind::kRotate, 0.6, 8},    {Kind::kColor, 0.6, 1},        {Kind::kEqualize, 1.0, 2},
    {Kind::kInvert, 0.4, 9},    {Kind::kRotate, 0.6, 0},       {Kind::kEqualize, 1.0, 9},
    {Kind::kShearY, 0.6, 3},    {Kind::kColor, 0.4, 7},        {Kind::kEqualize, 0.6, 0},
    {Kind::kPosterize, 0.4, 6}, {Kind::kAutoContrast, 0.4, 7}, {Kind::kSolarize, 0.6, 8},
    {Kind::kColor, 0.6, 9},     {Kind::kSolarize, 0.2, 4},     {Kind::kRotate, 0.8, 9},
    {Kind::kRotate, 1.0, 7},    {Kind::kTranslateY, 0.8, 9},   {Kind::kShearX, 0.0, 0},
    {Kind::kSolarize, 0.8, 4},  {Kind::kShearY, 0.8, 0},       {Kind::kColor, 0.6, 4},
    {Kind::kColor, 1.0, 0},     {Kind::kRotate, 0.6, 2},       {Kind::kEqualize, 0.8, 4},
    {Kind::kEqualize, 0.0, 8},  {Kind::kEqualize, 1.0, 4},     {Kind::kAutoContrast, 0.6, 2},
    {Kind::kShearY, 0.4, 7},    {Kind::kSolarizeAdd, 0.6, 7},  {Kind::kPosterize, 0.8, 2},
    {Kind::kSolarize, 0.6, 10}, {Kind::kSolarize, 0.6, 8},     {Kind::kEqualize, 0.6, 1},
    {Kind::kColor, 0.8, 6},     {Kind::kRotate, 0.4, 5},
};
inline constexpr TimmStep kOriginal[] = {
    {Kind::kPosterizeOriginal, 0.4, 8},
    {Kind::kRotate, 0.6, 9},
    {Kind::kSolarize, 0.6, 5},
    {Kind::kAutoContrast, 0.6, 5},
    {Kind::kEqualize, 0.8, 8},
    {Kind::kEqualize, 0.6, 3},
    {Kind::kPosterizeOriginal, 0.6, 7},
    {Kind::kPosterizeOriginal, 0.6, 6},
    {Kind::kEqualize, 0.4, 7},
    {Kind::kSolarize, 0.2, 4},
    {Kind::kEqualize, 0.4, 4},
    {Kind::kRotate, 0.8, 8},
    {Kind::kSolarize, 0.6, 3},
    {Kind::kEqualize, 0.6, 7},
    {Kind::kPosterizeOriginal, 0.8, 5},
    {Kind::kEqualize, 1.0, 2},
    {Kind::kRotate, 0.2, 3},
    {Kind::kSolarize, 0.6, 8},
    {Kind::kEqualize, 0.6, 8},
    {Kind::kPosterizeOriginal, 0.4, 6},
    {Kind::kRotate, 0.8, 8},
    {Kind::kColor, 0.4, 0},
    {Kind::kRotate, 0.4, 9},
    {Kind::kEqualize, 0.6, 2},
    {Kind::kEqualize, 0.0, 7},
    {Kind::kEqualize, 0.8, 8},
    {Kind::kInvert, 0.6, 4},
    {Kind::kEqualize, 1.0, 8},
    {Kind::kColor, 0.6, 4},
    {Kind::kContrast, 1.0, 8},
    {Kind::kRotate, 0.8, 8},
    {Kind::kColor, 1.0, 2},
    {Kind::kColor, 0.8, 8},
    {Kind::kSolarize, 0.8, 7},
    {Kind::kSharpness, 0.4, 7},
    {Kind::kInvert, 0.6, 8},
    {Kind::kShearX, 0.6, 5},
    {Kind::kEqualize, 1.0, 9},
    {Kind::kColor, 0.4, 0},
    {Kind::kEqualize, 0.6, 3},
    {Kind::kEqualize, 0.4, 7},
    {Kind::kSolarize, 0.2, 4},
    {Kind::kSolarize, 0.6, 5},
    {Kind::kAutoContrast, 0.6, 5},
    {Kind::kInvert, 0.6, 4},
    {Kind::kEqualize, 1.0, 8},
    {Kind::kColor, 0.6, 4},
    {Kind::kContrast, 1.0, 8},
    {Kind::kEqualize, 0.8, 8},
    {Kind::kEqualize, 0.6, 3},
};

inline constexpr TimmStep kThree[] = {
    {Kind::kSolarize, 1, 5}, {Kind::kDesaturate, 1, 10}, {Kind::kGaussianBlurRand, 1, 10}};

inline constexpr Kind kRand[] = {
    Kind::kAutoContrast, Kind::kEqualize,    Kind::kInvert, Kind::kRotate,     Kind::kPosterize,
    Kind::kSolarize,     Kind::kSolarizeAdd, Kind::kColor,  Kind::kContrast,   Kind::kBrightness,
    Kind::kSharpness,    Kind::kShearX,      Kind::kShearY, Kind::kTranslateX, Kind::kTranslateY};
inline constexpr Kind kRandIncreasing[] = {Kind::kAutoContrast,
                                           Kind::kEqualize,
                                           Kind::kInvert,
                                           Kind::kRotate,
                                           Kind::kPosterizeIncreasing,
                                           Kind::kSolarizeIncreasing,
                                           Kind::kSolarizeAdd,
                                           Kind::kColorIncreasing,
                                           Kind::kContrastIncreasing,
                                           Kind::kBrightnessIncreasing,
                                           Kind::kSharpnessIncreasing,
                                           Kind::kShearX,
                                           Kind::kShearY,
                                           Kind::kTranslateX,
                                           Kind::kTranslateY};
inline constexpr Kind kRandThree[] = {Kind::kSolarizeIncreasing, Kind::kDesaturate,
                                      Kind::kGaussianBlur};
inline constexpr Kind kMix[] = {Kind::kAutoContrast,
                                Kind::kColorIncreasing,
                                Kind::kContrastIncreasing,
                                Kind::kBrightnessIncreasing,
                                Kind::kSharpnessIncreasing,
                                Kind::kEqualize,
                                Kind::kRotate,
                                Kind::kPosterizeIncreasing,
                                Kind::kSolarizeIncreasing,
                                Kind::kShearX,
                                Kind::kShearY,
                                Kind::kTranslateX,
                                Kind::kTranslateY};

struct Weighted {
  Kind kind;
  double weight;
};
inline constexpr Weighted kWeightedThree[] = {{Kind::kSolarizeIncreasing, 6},
                                              {Kind::kDesaturate, 6},
                                              {Kind::kGaussianBlur, 6},
                                              {Kind::kRotate, 3},
                                              {Kind::kShearX, 2},
                                              {Kind::kShearY, 2},
                                              {Kind::kPosterizeIncreasing, 1},
                                              {Kind::kAutoContrast, 1},
                                              {Kind::kColorIncreasing, 1},
                                              {Kind::kSharpnessIncreasing, 1},
                                              {Kind::kContrastIncreasing, 1},
                                              {Kind::kBrightnessIncreasing, 1},
                                              {Kind::kEqualize, 1},
                                              {Kind::kInvert, 1}};
inline constexpr Weighted kWeights[] = {{Kind::kRotate, 3},
                                        {Kind::kShearX, 2},
                                        {Kind::kShearY, 2},
                                        {Kind::kTranslateX, 1},
                                        {Kind::kTranslateY, 1},
                                        {Kind::kColorIncreasing, 0.25},
                                        {Kind::kSharpnessIncreasing, 0.25},
                                        {Kind::kAutoContrast, 0.25},
                                        {Kind::kSolarizeIncreasing, 0.05},
                                        {Kind::kSolarizeAdd, 0.05},
                                        {Kind::kContrastIncreasing, 0.05},
                                        {Kind::kBrightnessIncreasing, 0.05},
                                        {Kind::kEqualize, 0.05},
                                        {Kind::kPosterizeIncreasing, 0.05},
                                        {Kind::kInvert, 0.05}};
}  // namespace timm

}  // namespace headrace
