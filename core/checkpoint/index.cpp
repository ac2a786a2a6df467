// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/index.hpp"

#include <cstring>

#include "core/base/text.hpp"
#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/parse_json.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {
namespace {

constexpr auto kNameOf = [](const IndexEntry& entry) { return entry.name; };
constexpr auto kKeyOf = [](const StoredText& text) { return text.key; };
constexpr auto kFileOf = [](const IndexEntry& entry) { return entry.file; };

// Whether the text names a file in the index's own folder.
bool is_file_name(std::string_view text) noexcept {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos;
}

}  // namespace

// Handles the events of RapidJSON. It ignores unknown parts and metadata that are not texts, because other
// programs may write them. It stops at the first misplaced value.
class Index::Parser {
 public:
  explicit Parser(Index& index) noexcept : index_(index) {}

  // The error, if this handler stopped the parser.
  Status status() const noexcept { return status_; }
  bool has_files() const noexcept { return has_files_; }

  // The names are prescribed by RapidJSON. NOLINTBEGIN(readability-identifier-naming)
  bool StartObject() {
    switch (at_) {
      case At::kBegin: at_ = At::kPart; return true;
      case At::kTexts: at_ = At::kKey; return true;
      case At::kFiles: at_ = At::kName; return true;
      case At::kText:
      case At::kOther: return skip_begin();
      default: return misplaced("an object");
    }
  }
  bool EndObject(rapidjson::SizeType) {
    if (skips()) return skip_end();
    at_ = At::kPart;  // the end of a part or of everything
    return true;
  }
  bool StartArray() { return at_ == At::kText || at_ == At::kOther ? skip_begin() : misplaced("a list"); }
  bool EndArray(rapidjson::SizeType) { return skip_end(); }
  bool Key(const char* text, rapidjson::SizeType length, bool);
  bool String(const char* text, rapidjson::SizeType length, bool);
  bool Null() { return passed("null"); }
  bool Bool(bool) { return passed("a boolean"); }
  bool Int(int) { return passed("a number"); }
  bool Uint(unsigned) { return passed("a number"); }
  bool Int64(int64_t) { return passed("a number"); }
  bool Uint64(uint64_t) { return passed("a number"); }
  bool Double(double) { return passed("a number"); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return passed("a number"); }
  // NOLINTEND(readability-identifier-naming)

 private:
  // The next item that the parser expects.
  enum class At {
    kBegin,
    kPart,   // name of a part, or the end
    kOther,  // value of an unknown part
    kTexts,  // the metadata object
    kKey,    // of a text, or the end
    kText,
    kFiles,  // the map object
    kName,   // of a tensor, or the end
    kFile,
  };

  template <class... Arguments>
  bool loses(const char* format, Arguments... arguments) noexcept {
    status_ = fail(DIST_DATA_LOSS, format, arguments...);
    return false;
  }
  // Whether the events belong to a list or an object that is ignored.
  bool skips() const noexcept { return !skipped_.scalar(); }
  bool skip_begin() noexcept;
  bool skip_end() noexcept;
  bool part(std::string_view name) noexcept;
  bool passed(const char* what) noexcept;
  bool misplaced(const char* what) noexcept;

  Index& index_;
  At at_ = At::kBegin;
  bool has_texts_ = false;
  bool has_files_ = false;
  const char* key_ = "";  // or the name of the tensor
  SkippedValue skipped_;
  Status status_;
};

bool Index::Parser::misplaced(const char* what) noexcept {
  switch (at_) {
    case At::kBegin: return loses("the index is %s, but must be an object", what);
    case At::kTexts: return loses("\"%s\" is %s, but must be an object", kIndexMetadata, what);
    case At::kFiles: return loses("\"%s\" is %s, but must be an object", kIndexFiles, what);
    case At::kText:
      return loses("\"%s\": \"%s\" is %s, but must be a string or a number", kIndexMetadata,
                   Shown(key_).c_str(), what);
    case At::kFile:
      return loses("tensor \"%s\": its file is %s, but must be a file name", Shown(key_).c_str(), what);
    default: return loses("the index has %s in a wrong place", what);
  }
}

bool Index::Parser::skip_begin() noexcept {
  skipped_.begin();
  return !skipped_.too_deep() || loses("the index nests deeper than %d levels", SkippedValue::kMostDepth);
}

bool Index::Parser::skip_end() noexcept {
  if (skipped_.end()) at_ = at_ == At::kText ? At::kKey : At::kPart;
  return true;
}

bool Index::Parser::passed(const char* what) noexcept {
  if (skips()) return true;
  if (at_ == At::kTexts && std::strcmp(what, "null") == 0) {
    at_ = At::kPart;
    return true;
  }
  if (at_ != At::kText && at_ != At::kOther) return misplaced(what);
  at_ = at_ == At::kText ? At::kKey : At::kPart;
  return true;
}

bool Index::Parser::part(std::string_view name) noexcept {
  const bool texts = name == kIndexMetadata;
  const bool files = name == kIndexFiles;
  if ((texts && has_texts_) || (files && has_files_))
    return loses("the index has \"%s\" twice", texts ? kIndexMetadata : kIndexFiles);
  has_texts_ = has_texts_ || texts;
  has_files_ = has_files_ || files;
  at_ = texts ? At::kTexts : files ? At::kFiles : At::kOther;
  return true;
}

bool Index::Parser::Key(const char* text, rapidjson::SizeType length, bool) {
  if (skips()) return true;
  if (at_ == At::kPart) return part({text, length});
  if (std::strlen(text) != length)
    return loses("the name that begins with \"%s\" contains a NUL byte", Shown(text).c_str());
  key_ = text;
  at_ = at_ == At::kKey ? At::kText : At::kFile;
  return true;
}

bool Index::Parser::String(const char* text, rapidjson::SizeType length, bool) {
  if (skips() || at_ == At::kOther) return passed("a string");
  if (at_ != At::kText && at_ != At::kFile) return misplaced("a string");
  if (std::strlen(text) != length)
    return loses("the text of \"%s\" contains a NUL byte", Shown(key_).c_str());
  if (at_ == At::kText) {
    index_.texts_.push_back({key_, text});
    at_ = At::kKey;
    return true;
  }
  if (!is_file_name({text, length})) {
    return loses("tensor \"%s\": \"%s\" is not the name of a file in the folder of the index",
                 Shown(key_).c_str(), Shown(text).c_str());
  }
  index_.entries_.push_back({key_, text, 0});
  at_ = At::kName;
  return true;
}

bool begins_index(const char (&first)[kKindBytes]) noexcept {
  uint64_t length = 0;
  std::memcpy(&length, first, sizeof length);
  return length > kMaxHeaderBytes && std::string_view("{ \t\r\n").find(first[0]) != std::string_view::npos;
}

char* Index::make_room(std::size_t bytes) {
  size_ = bytes;
  text_.assign(bytes + kJsonEndBytes, '\0');
  return text_.data();
}

Status Index::parse() {
  checksum_ = crc32(0, text_.data(), size_);
  DIST_TRY(check_text(*memory_, {text_.data(), size_}, "the index"));
  Parser parser(*this);
  DIST_TRY(parse_json(text_.data(), size_, parser,
                      "is neither a safetensors file nor an index of such files: it is not JSON",
                      "the index"));
  if (!parser.has_files()) {
    return fail(DIST_DATA_LOSS, "is neither a safetensors file nor an index of such files: it has no \"%s\"",
                kIndexFiles);
  }
  sort_by_name(entries_, by_name_, kNameOf);
  if (const char* const name = twice(entries_, by_name_, kNameOf))
    return fail(DIST_DATA_LOSS, "the index has the tensor \"%s\" twice", Shown(name).c_str());
  sort_by_name(texts_, by_key_, kKeyOf);
  if (const char* const key = twice(texts_, by_key_, kKeyOf))
    return fail(DIST_DATA_LOSS, "\"%s\" has the key \"%s\" twice", kIndexMetadata, Shown(key).c_str());
  return number_files();
}

Status Index::number_files() {
  NameIndex by_file(memory_);
  sort_by_name(entries_, by_file, kFileOf);
  for (const std::size_t i : by_file) {
    if (files_.empty() || std::strcmp(files_.back(), entries_[i].file) != 0)
      files_.push_back(entries_[i].file);
    entries_[i].number = files_.size() - 1;
  }
  if (files_.size() <= kMaxFiles) return kOk;
  return fail(DIST_UNIMPLEMENTED, "the index has %zu files, but libdist opens at most %zu at the same time",
              files_.size(), kMaxFiles);
}

const IndexEntry* Index::find(const char* name) const noexcept {
  return find_by_name(entries_, by_name_, name, kNameOf);
}

const char* Index::text(const char* key) const noexcept {
  const StoredText* const found = find_by_name(texts_, by_key_, key, kKeyOf);
  return found == nullptr ? nullptr : found->text;
}

}  // namespace dist
