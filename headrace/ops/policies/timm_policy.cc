// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/policies/timm_policy.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "headrace/base/number_text.h"
#include "headrace/ops/policies/timm_tables.h"

namespace headrace {
namespace {

constexpr std::string_view kRandPieces =
    "m (strength), n (how many), p (of each), mstd, mmax, inc (0 or 1), and tweights, t3a or t3aw";
constexpr std::string_view kMixPieces =
    "m (strength), w (chains), d (length of a chain), a (alpha), b (0 or 1: blended), mstd";

// One of the string's pieces after the first: "mstd0.5".
struct Piece {
  std::string_view text, key, number;
};

class TimmText {
 public:
  TimmText(std::string_view owner, std::string_view text) : owner_(owner), text_(text) {
    std::vector<std::string_view> pieces;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find('-', at), text.size());
      pieces.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    policy_ = pieces.front();
    for (const std::string_view piece : std::span(pieces).subspan(1)) {
      const size_t digits = std::min(piece.find_first_of("0123456789"), piece.size());
      const bool names_set = piece.starts_with('t');
      pieces_.push_back(
          {piece, names_set ? "t" : piece.substr(0, digits), piece.substr(names_set ? 1 : digits)});
    }
  }

  std::string_view policy() const { return policy_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  [[noreturn]] void refuse(std::string_view piece, const std::string& what,
                           const std::string& hint) const {
    raise_invalid_argument(
        owner_, "policy=\"" + std::string(text_) + "\": \"" + std::string(piece) + "\" " + what,
        hint);
  }
  // Each key at most once, and only from `keys`; `allowed` lists them for the message.
  void check(std::initializer_list<std::string_view> keys, std::string_view allowed) const {
    std::set<std::string_view> seen;
    for (const Piece& piece : pieces_) {
      if (std::ranges::find(keys, piece.key) == keys.end()) {
        const std::string hint = "after \"" + std::string(policy_) + "\" may appear " +
                                 std::string(allowed) + ", with \"-\" between";
        if (piece.text == "w0" && policy_ == "rand") {
          refuse(piece.text, "is no longer supported: timm has removed it",
                 "\"tweights\" chooses by timm's weights; " + hint);
        }
        refuse(piece.text, "is not an option of this policy", hint);
      }
      if (piece.number.empty())
        refuse(piece.text, "lacks its number", "such as \"" + std::string(piece.key) + "1\"");
      if (!seen.insert(piece.key).second) {
        refuse(piece.text, "repeats \"" + std::string(piece.key) + "\"", "omit one of them");
      }
    }
  }
  template <class Number>
  Number number(const Piece& piece, Number least, Number most) const {
    const auto out = number_from<Number>(piece.number);
    if (!out) {
      refuse(
          piece.text, std::is_integral_v<Number> ? "has no whole number" : "has no number",
          "such as \"" + std::string(piece.key) + (std::is_integral_v<Number> ? "3\"" : "0.5\""));
    }
    if (!(*out >= least && *out <= most)) {
      refuse(piece.text, "is out of range",
             "from " + shortest_text(least) + " to " + shortest_text(most));
    }
    return *out;
  }

 private:
  std::string_view owner_, text_, policy_;
  std::vector<Piece> pieces_;
};

constexpr int kMaxMagnitude = 1000, kMaxLayers = 64;
constexpr double kMaxDeviation = 1e6;

void choose_from(std::span<const TimmStep::Kind> kinds, double p, double magnitude,
                 TimmPolicy& policy) {
  for (const TimmStep::Kind kind : kinds) policy.steps.push_back({kind, p, magnitude});
}

TimmPolicy rand_policy(const TimmText& text) {
  text.check({"m", "n", "p", "mstd", "mmax", "inc", "t"}, kRandPieces);
  TimmPolicy policy;
  int magnitude = 10;
  double p = 0.5;
  bool increasing = false;
  std::string_view set, layers = "n";
  for (const Piece& piece : text.pieces()) {
    if (piece.key == "m") magnitude = text.number(piece, 0, kMaxMagnitude);
    if (piece.key == "n") {
      policy.layers = text.number(piece, 1, kMaxLayers);
      layers = piece.text;
    }
    if (piece.key == "p") p = text.number(piece, 0.0, 1.0);
    if (piece.key == "mstd") policy.deviation = text.number(piece, 0.0, kMaxDeviation);
    if (piece.key == "mmax") policy.most = text.number(piece, 0, kMaxMagnitude);
    if (piece.key == "inc") increasing = text.number(piece, 0, 1) == 1;
    if (piece.key != "t") continue;
    set = piece.number;
    if (set != "weights" && set != "3a" && set != "3aw") {
      text.refuse(piece.text, "is not a set of operations", "\"tweights\", \"t3a\" or \"t3aw\"");
    }
  }
  if (policy.most == 0) policy.most = 10;  // parsed like timm does
  if (policy.deviation > 100) policy.deviation = std::numeric_limits<double>::infinity();
  const auto weighted = [&](std::span<const timm::Weighted> all) {
    for (const timm::Weighted& each : all) {
      policy.steps.push_back({each.kind, p, double(magnitude)});
      policy.weights.push_back(each.weight);
    }
  };
  if (set == "weights") {
    weighted(timm::kWeights);
  } else if (set == "3aw") {
    weighted(timm::kWeightedThree);
  } else if (set == "3a") {
    choose_from(timm::kRandThree, p, magnitude, policy);
  } else {
    choose_from(increasing ? std::span(timm::kRandIncreasing) : std::span(timm::kRand), p,
                magnitude, policy);
  }
  if (!policy.weights.empty() && policy.layers > std::ssize(policy.steps)) {
    text.refuse(layers, "requests more operations than exist",
                "with weights, each can be drawn only once; the number of operations is " +
                    std::to_string(policy.steps.size()));
  }
  return policy;
}

TimmPolicy mix_policy(const TimmText& text) {
  text.check({"m", "w", "d", "a", "b", "mstd"}, kMixPieces);
  TimmPolicy policy{.form = TimmPolicy::Form::kAugMix,
                    .deviation = std::numeric_limits<double>::infinity()};
  int magnitude = 3;
  for (const Piece& piece : text.pieces()) {
    if (piece.key == "m") magnitude = text.number(piece, 0, kMaxMagnitude);
    if (piece.key == "w") policy.width = text.number(piece, 1, kMaxLayers);
    if (piece.key == "d") policy.depth = text.number(piece, 0, kMaxLayers);
    if (piece.key == "a") policy.alpha = text.number(piece, 1e-6, 1e6);
    if (piece.key == "b") policy.blended = text.number(piece, 0, 1) == 1;
    if (piece.key == "mstd") policy.deviation = text.number(piece, 0.0, kMaxDeviation);
  }
  choose_from(timm::kMix, 1, magnitude, policy);
  return policy;
}

TimmPolicy auto_policy(const TimmText& text) {
  TimmPolicy policy{.form = TimmPolicy::Form::kAuto};
  const std::string_view name = text.policy();
  std::span<const TimmStep> steps;
  if (name == "v0" || name == "v0r") {
    steps = timm::kV0;
  } else if (name == "original" || name == "originalr") {
    steps = timm::kOriginal;
  } else if (name == "3a") {
    steps = timm::kThree;
    policy.pair = 1;
  } else {
    text.refuse(name, "is not a timm policy",
                "\"rand\", \"augmix\", \"original\", \"originalr\", \"v0\", \"v0r\" or \"3a\"");
  }
  text.check({"mstd"}, "mstd");
  for (const Piece& piece : text.pieces()) {
    policy.deviation = text.number(piece, 0.0, kMaxDeviation);
  }
  policy.steps.assign(steps.begin(), steps.end());
  if (!name.ends_with('r')) return policy;
  for (TimmStep& step : policy.steps) {
    using enum TimmStep::Kind;
    if (step.kind == kPosterize || step.kind == kPosterizeOriginal) {
      step.kind = kPosterizeIncreasing;
    }
  }
  return policy;
}

}  // namespace

TimmPolicy timm_policy(std::string_view owner, std::string_view text) {
  const TimmText read(owner, text);
  if (read.policy() == "rand") return rand_policy(read);
  if (read.policy() == "augmix") return mix_policy(read);
  return auto_policy(read);
}

// In double precision and in timm's order; Python truncates the results to integers.
double timm_argument(TimmStep::Kind kind, double level, bool negated, double translate,
                     double share) {
  using enum TimmStep::Kind;
  const double part = level / 10.0;
  const auto with_sign = [&](double value) { return negated ? -value : value; };
  const auto between = [&](double least, double most) {
    return std::clamp(least + (most - least) * part, least, most);
  };
  const auto bits = [&] { return std::trunc(part * 4); };
  const auto threshold = [&] { return std::min(256.0, std::trunc(part * 256)); };
  switch (kind) {
    case kAutoContrast:
    case kEqualize:
    case kInvert:
      return 0;
    case kRotate:
      return with_sign(part * 30.0);
    case kPosterize:
      return std::min(bits(), 8.0);
    case kPosterizeIncreasing:
      return std::max(4 - bits(), 0.0);
    case kPosterizeOriginal:
      return std::min(bits() + 4, 8.0);
    case kSolarize:
      return threshold();
    case kSolarizeIncreasing:
      return 256 - threshold();
    case kSolarizeAdd:
      return std::min(128.0, std::trunc(part * 110));
    case kColor:
    case kContrast:
    case kBrightness:
    case kSharpness:
      return part * 1.8 + 0.1;
    case kColorIncreasing:
    case kContrastIncreasing:
    case kBrightnessIncreasing:
    case kSharpnessIncreasing:
      return std::max(0.1, 1.0 + with_sign(part * 0.9));
    case kShearX:
    case kShearY:
      return with_sign(part * 0.3);
    case kTranslateX:
    case kTranslateY:
      return with_sign(part * translate);
    case kDesaturate:
      return std::min(1.0, std::max(0.0, 1.0 - between(0.5, 1.0)));
    case kGaussianBlur:
      return between(0.1, 2.0);
    case kGaussianBlurRand:
      return 0.1 + (2.0 * between(0.0, 1.0) - 0.1) * share;
  }
  return 0;
}

}  // namespace headrace
