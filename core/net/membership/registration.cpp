// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/registration.hpp"

#include <charconv>
#include <string_view>

#include "core/base/json_out.hpp"
#include "core/base/text.hpp"
#include "core/cluster/link_security.hpp"

namespace dist {
namespace {

constexpr const char* kWhat = "the registration";
constexpr std::size_t kDepth = 2;
using JsonWriter = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool>;

class Text final : public CallParts {
 public:
  Text(Memory& memory, std::string_view text)
      : CallParts(memory), text_(text, &memory), part_(std::as_bytes(std::span(text_))) {}
  std::span<const std::span<const std::byte>> parts() const noexcept override { return {&part_, 1}; }
  std::size_t bytes() const noexcept override { return text_.size(); }

 private:
  ~Text() override = default;
  const std::pmr::string text_;
  const std::span<const std::byte> part_;
};

// Copies the bytes to a string. Fails if they contain NUL.
Status text_of(std::span<const std::byte> bytes, const char* what, std::pmr::string* out) {
  out->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out->find('\0') == out->npos ? kOk : invalid_argument("%s contains a NUL byte", what);
}

Status find(const JsonTree& tree, const char* key, JsonKind kind, const JsonTree::Value** out) noexcept {
  *out = tree.find(tree.root(), key);
  if (*out != nullptr && (*out)->kind == kind) return kOk;
  return invalid_argument("\"%s\" in %s is %s, but must be %s", key, kWhat,
                          *out == nullptr ? "missing" : name_of((*out)->kind), name_of(kind));
}

Status read_number(const JsonTree& tree, const char* key, int32_t least, int32_t most,
                   int32_t* out) noexcept {
  const JsonTree::Value* value = nullptr;
  DIST_TRY(find(tree, key, JsonKind::kNumber, &value));
  const char* const end = value->text.data() + value->text.size();
  const auto [at, error] = std::from_chars(value->text.data(), end, *out);
  if (error == std::errc() && at == end && *out >= least && *out <= most) return kOk;
  return invalid_argument("\"%s\" in %s is %s, but must be %d to %d", key, kWhat, Shown(value->text).c_str(),
                          least, most);
}

Status read_text(const JsonTree& tree, const char* key, std::size_t most, std::pmr::string* out) {
  const JsonTree::Value* value = nullptr;
  DIST_TRY(find(tree, key, JsonKind::kText, &value));
  if (value->text.size() > most || value->text.find('\0') != std::string_view::npos) {
    return invalid_argument("\"%s\" in %s has more than %zu bytes or contains NUL", key, kWhat, most);
  }
  *out = value->text;
  return is_line(out->c_str()) ? kOk : invalid_argument("\"%s\" in %s is not a single line", key, kWhat);
}

}  // namespace

std::pmr::string address_text(Memory& memory, std::string_view host, int port) {
  std::pmr::string text(&memory);
  const bool is_v6 = host.find(':') != std::string_view::npos;
  if (is_v6) text += '[';
  text += host;
  if (is_v6) text += ']';
  text += ':';
  return text += std::to_string(port);
}

void Registration::write(std::pmr::string* out) const {
  char buffer[512];
  JsonPool pool(buffer, sizeof buffer);
  JsonOut stream(*out);
  JsonWriter json(stream, &pool, kDepth);
  json.StartObject();
  json.Key("job");
  json.String(job.c_str());
  json.Key("rank");
  json.Int(rank);
  json.Key("size");
  json.Int(size);
  json.Key("host");
  json.String(host.c_str());
  json.Key("port");
  json.Int(port);
  json.EndObject();
}

Status Registration::read(Memory& memory, std::span<const std::byte> bytes) {
  std::pmr::string text(&memory);
  DIST_TRY(text_of(bytes, kWhat, &text));
  JsonTree tree(&memory);
  DIST_TRY(tree.parse(text.c_str(), kWhat));
  if (tree.root().kind != JsonKind::kObject) {
    return invalid_argument("%s is %s, but must be an object", kWhat, name_of(tree.root().kind));
  }
  DIST_TRY(read_text(tree, "job", kMostJobNameBytes, &job));
  DIST_TRY(read_number(tree, "size", 1, DIST_MAX_CLUSTER_TASKS, &size));
  DIST_TRY(read_number(tree, "rank", 0, size - 1, &rank));
  DIST_TRY(read_number(tree, "port", 1, 65535, &port));
  DIST_TRY(read_text(tree, "host", DIST_MAX_ADDRESS_BYTES - 16, &host));
  HostAndPort parsed;
  if (host.empty() || parse_address(address_text(memory, host, port).c_str(), 1, &parsed)) return kOk;
  return invalid_argument("\"host\" in %s is \"%s\", but must be a host name or an IP address", kWhat,
                          Shown(host.c_str()).c_str());
}

Status read_cluster(Memory& memory, std::span<const std::byte> bytes, int32_t rank, int32_t size, int port,
                    Ref<ClusterSpec>* out) {
  constexpr const char* kAnswer = "the response of worker 0";
  std::pmr::string text(&memory);
  DIST_TRY(text_of(bytes, kAnswer, &text));
  JsonTree tree(&memory);
  DIST_TRY(tree.parse(text.c_str(), kAnswer));
  DIST_TRY(ClusterSpec::from_json(memory, tree, tree.root(), kAnswer, out));
  const ClusterSpec::Job* const job = (*out)->find("worker");
  if (job == nullptr || (*out)->jobs().size() != 1 || !(*out)->is_list(*job) ||
      job->num_tasks != static_cast<uint32_t>(size)) {
    return invalid_argument("%s is not a cluster of %s", kAnswer, CountText(size, "worker").text);
  }
  for (uint32_t i = 0; i < job->num_tasks; ++i) {
    HostAndPort parsed;
    const char* const address = (*out)->address(*job, i);
    if (!parse_address(address, 1, &parsed) || (static_cast<int32_t>(i) == rank && parsed.port != port)) {
      return invalid_argument("%s has the address \"%s\" for worker %u, which cannot be correct", kAnswer,
                              Shown(address).c_str(), i);
    }
  }
  return kOk;
}

Ref<CallParts> make_text(Memory& memory, std::string_view text) {
  return Ref<CallParts>::adopt(make_counted<Text>(memory, text).take());
}

}  // namespace dist
