// SPDX-License-Identifier: Apache-2.0
// Collects tensors and texts from the events of RapidJSON. Like the safetensors library, it ignores unknown
// fields of a tensor, and metadata that is null. It stops at the first misplaced value.
#pragma once

#include <rapidjson/reader.h>

#include "core/checkpoint/header.hpp"
#include "core/checkpoint/parse_json.hpp"

namespace dist {

class Header::Parser {
 public:
  explicit Parser(Header& header) noexcept : header_(header) {}

  // The error, if this handler stopped the parser.
  Status status() const noexcept { return status_; }

  // The names are prescribed by RapidJSON. NOLINTBEGIN(readability-identifier-naming)
  bool StartObject();
  bool EndObject(rapidjson::SizeType);
  bool StartArray();
  bool EndArray(rapidjson::SizeType);
  bool Key(const char* text, rapidjson::SizeType length, bool);
  bool String(const char* text, rapidjson::SizeType length, bool);
  bool Uint(unsigned number) { return Uint64(number); }
  bool Uint64(uint64_t number);
  bool Null();
  bool Bool(bool) { return skips() || misplaced("a boolean"); }
  bool Int(int) { return skips() || misplaced("a negative number"); }
  bool Int64(int64_t) { return skips() || misplaced("a negative number"); }
  bool Double(double) { return skips() || misplaced("a number that is not an integer or is too large"); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return skips() || misplaced("a number"); }
  // NOLINTEND(readability-identifier-naming)

 private:
  // The next item that the parser expects.
  enum class At {
    kBegin,
    kName,      // of a tensor, or the end
    kMetadata,  // the metadata object
    kKey,       // of a text, or the end
    kText,
    kTensor,  // the tensor's object
    kField,   // of a tensor, or the end
    kDtype,
    kShape,  // the list
    kSize,   // an item of the list, or its end
    kOffsets,
    kOffset,
    kSkipped,  // the value of an unknown field, or something in it
  };
  enum Field : unsigned { kHasDtype = 1, kHasShape = 2, kHasOffsets = 4, kHasAll = 7 };

  bool fail_with(Status status) noexcept {
    status_ = status;
    return false;
  }
  bool misplaced(const char* what) noexcept;
  bool wanted(At at, const char* what) noexcept { return at_ == at || misplaced(what); }
  // Whether a value without parts belongs to a value that is skipped.
  bool skips() noexcept;
  bool skip_begin() noexcept;
  bool skip_end() noexcept;
  bool name(const char* text) noexcept;
  bool field(std::string_view text) noexcept;
  bool end_tensor();

  Header& header_;
  At at_ = At::kBegin;
  StoredTensor tensor_{};
  unsigned fields_ = 0;
  unsigned num_offsets_ = 0;
  bool has_metadata_ = false;
  const char* key_ = nullptr;
  const StoredDtype* dtype_ = nullptr;  // of the latest tensor; most tensors of a file have the same one
  SkippedValue skipped_;
  Status status_;
};

}  // namespace dist
