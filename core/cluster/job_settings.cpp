// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/job_settings.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/os/file.hpp"
#include "core/base/text.hpp"
#include "core/cluster/resolver.hpp"

namespace dist {
namespace {

constexpr std::size_t kMostText = 4096;
constexpr int64_t kMostPemBytes = int64_t{1} << 20;

// Stores NULL if the variable is not set or is empty.
Status text_of(const char* name, const char** out) noexcept {
  const char* const text = environment_text(name);
  *out = text != nullptr && *text != '\0' ? text : nullptr;
  if (*out != nullptr && strnlen(text, kMostText + 1) > kMostText)
    return invalid_argument("%s has more than %zu bytes", name, kMostText);
  return kOk;
}

Status read_transport(JobSettings* out) {
  const char* text = nullptr;
  DIST_TRY(text_of("DIST_TRANSPORT", &text));
  if (text == nullptr) return kOk;
  static constexpr struct {
    const char* word;
    dist_transport transport;
  } kWords[] = {{"auto", DIST_TRANSPORT_AUTO},
                {"none", DIST_TRANSPORT_NONE},
                {"grpc", DIST_TRANSPORT_GRPC},
                {"gloo", DIST_TRANSPORT_GLOO}};
  for (const auto& each : kWords) {
    if (std::strcmp(text, each.word) == 0) return out->transport = each.transport, kOk;
  }
  out->transport = JobSettings::kLinkModule;
  out->link_module = text;
  return kOk;
}

Status read_replicas(int32_t* out) noexcept {
  const char* text = nullptr;
  DIST_TRY(text_of("DIST_REPLICAS", &text));
  if (text == nullptr) return kOk;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, *out);
  if (error == std::errc() && at == end && *out >= 1) return kOk;
  return invalid_argument(
      "DIST_REPLICAS is \"%s\", but must be the number of replicas of each worker, at least 1",
      Shown(text).c_str());
}

Status read_lease(int64_t* out) noexcept {
  const char* text = nullptr;
  DIST_TRY(text_of("DIST_LEASE_SECONDS", &text));
  if (text == nullptr) return kOk;
  constexpr double kLeast = 0.1;
  constexpr double kMost = 3600;
  double seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, seconds, std::chars_format::fixed);
  if (error != std::errc() || at != end || !(seconds >= kLeast && seconds <= kMost)) {
    return invalid_argument("DIST_LEASE_SECONDS is \"%s\", but must be a number from 0.1 to 3600",
                            Shown(text).c_str());
  }
  *out = std::llround(seconds * 1e9);
  return kOk;
}

Status read_flag(const char* name, bool* out) noexcept {
  const char* text = nullptr;
  DIST_TRY(text_of(name, &text));
  if (text == nullptr) return kOk;
  if (std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0)
    return invalid_argument("%s is \"%s\", but must be 0 or 1", name, Shown(text).c_str());
  *out = *text == '1';
  return kOk;
}

// Reads the file that the variable names. Returns its contents and its path.
Status read_pem(const char* name, std::pmr::string* out, std::pmr::string* out_file) {
  const char* path = nullptr;
  DIST_TRY(text_of(name, &path));
  if (path == nullptr) return kOk;
  InputFile file;
  Status read = file.open(path);
  if (read.ok() && file.size() > kMostPemBytes) {
    return invalid_argument("%s: %s has %lld bytes, but a file of certificates can have at most %lld", name,
                            Shown(path).c_str(), static_cast<long long>(file.size()),
                            static_cast<long long>(kMostPemBytes));
  }
  if (read.ok()) {
    out->resize(static_cast<std::size_t>(file.size()));
    read = file.read_at(0, out->data(), out->size());
  }
  if (read.ok() && out->empty())
    return invalid_argument("%s: the file %s is empty, but must be a PEM file", name, Shown(path).c_str());
  if (read.ok() && out->find('\0') != out->npos)
    return invalid_argument("%s: the file %s contains a NUL byte, so it is not a PEM file", name,
                            Shown(path).c_str());
  if (read.ok()) {
    *out_file = path;
    return kOk;
  }
  const ErrorRecord why = last_error();
  return fail(read.code(), "%s: %s: %s", name, Shown(path).c_str(), why.message);
}

Status read_text(const char* name, std::pmr::string* out) {
  const char* text = nullptr;
  DIST_TRY(text_of(name, &text));
  if (text != nullptr) *out = text;
  return kOk;
}

}  // namespace

// Ignores the variable in a program with elevated privileges, because its user must not be able to choose the
// code that it loads.
Status read_module_folder(std::pmr::string* out) {
  const char* const folder = ::secure_getenv("DIST_MODULE_FOLDER");
  if (folder == nullptr || *folder == '\0') return kOk;
  if (strnlen(folder, kMostText + 1) > kMostText)
    return invalid_argument("DIST_MODULE_FOLDER has more than %zu bytes", kMostText);
  *out = folder;
  return kOk;
}

Status read_job_settings(JobSettings* out) {
  DIST_TRY(read_transport(out));
  DIST_TRY(read_replicas(&out->num_replicas));
  DIST_TRY(read_lease(&out->security.lease_ns));
  DIST_TRY(read_flag("DIST_PLAINTEXT", &out->security.allow_plaintext));
  DIST_TRY(read_module_folder(&out->module_folder));
  DIST_TRY(read_text("DIST_BIND_ADDRESS", &out->bind_address));
  DIST_TRY(read_text("DIST_JOB_SECRET", &out->security.secret));
  DIST_TRY(read_pem("DIST_TLS_CA", &out->security.ca, &out->security.ca_file));
  DIST_TRY(read_pem("DIST_TLS_CERTIFICATE", &out->security.certificate, &out->security.certificate_file));
  return read_pem("DIST_TLS_KEY", &out->security.key, &out->security.key_file);
}

}  // namespace dist
