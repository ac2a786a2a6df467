// SPDX-License-Identifier: Apache-2.0
// The environment variables of TLS: unusable files, as read_job_settings() and check_security() report them.
#include <sys/stat.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/cluster/job_settings.hpp"
#include "core/cluster/link_security.hpp"
#include "tests/unit/plain_error.hpp"

extern "C" {
#include <cmocka.h>
}

using namespace dist;

namespace {

constexpr const char* kNames[] = {"DIST_TLS_CA", "DIST_TLS_CERTIFICATE", "DIST_TLS_KEY"};
constexpr const char* kKinds[] = {"CERTIFICATE", "CERTIFICATE", "PRIVATE KEY"};

// A folder of its own with one file for each variable, which are set to them.
class Files {
 public:
  Files() {
    char name[] = "/tmp/dist-settings-XXXXXX";
    assert_non_null(mkdtemp(name));
    folder_ = name;
    for (int i = 0; i < 3; ++i) {
      write(i, std::string("-----BEGIN ") + kKinds[i] + "-----\nAAAA\n-----END " + kKinds[i] + "-----\n");
      setenv(kNames[i], path(i).c_str(), 1);
    }
  }
  ~Files() {
    for (int i = 0; i < 3; ++i) {
      unlink(path(i).c_str());
      unsetenv(kNames[i]);
    }
    rmdir(folder_.c_str());
  }
  std::string path(int i) const { return folder_ + "/" + kNames[i] + ".pem"; }
  void write(int i, const std::string& bytes) const {
    FILE* const file = std::fopen(path(i).c_str(), "wb");
    assert_non_null(file);
    assert_int_equal(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    assert_int_equal(std::fclose(file), 0);
  }

 private:
  std::string folder_;
};

// As a process that creates a strategy, or an RPC client, checks its settings.
Status check(JobSettings& settings) {
  DIST_TRY(read_job_settings(&settings));
  return check_security(settings.security.view());
}

void an_unusable_file_is_named_with_its_variable(void**) {
  using std::string_literals::operator""s;
  const struct {
    std::string bytes;
    const char* text;
  } table[] = {
      {"", " is empty, but must be a PEM file"},
      {"\0"s, " contains a NUL byte, so it is not a PEM file"},
      {"-----BEGIN CERTIFICATE-----\n\0"s, " contains a NUL byte, so it is not a PEM file"},
      {"garbage", "so it is not a PEM file of that kind"},
      {"-----BEGIN OTHER-----\n-----END OTHER-----\n", "so it is not a PEM file of that kind"},
  };
  const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  for (const auto& each : table) {
    for (int i = 0; i < 3; ++i) {
      const Files files;
      files.write(i, each.bytes);
      JobSettings settings(*memory);
      assert_int_equal(check(settings).code(), DIST_INVALID_ARGUMENT);
      const std::string message = last_message();
      const std::string begin = std::string(kNames[i]) + ": the file " + files.path(i);
      if (!message.starts_with(begin) || message.find(each.text) == std::string::npos)
        fail_msg("not '%s ...%s': %s", begin.c_str(), each.text, message.c_str());
    }
  }
}

void a_file_that_cannot_be_read_is_named_with_its_variable(void**) {
  const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  for (int i = 0; i < 3; ++i) {
    const Files files;
    assert_int_equal(unlink(files.path(i).c_str()), 0);
    const std::string begin = std::string(kNames[i]) + ": " + files.path(i);
    for (const bool is_folder : {false, true}) {
      if (is_folder) assert_int_equal(mkdir(files.path(i).c_str(), 0700), 0);
      JobSettings settings(*memory);
      const Status status = check(settings);
      if (is_folder) rmdir(files.path(i).c_str());
      assert_false(status.ok());
      if (!std::string(last_message()).starts_with(begin))
        fail_msg("not '%s ...': %s", begin.c_str(), last_message());
    }
  }
}

void a_variable_that_is_not_set_is_named(void**) {
  const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  for (int i = 0; i < 3; ++i) {
    const Files files;
    unsetenv(kNames[i]);
    JobSettings settings(*memory);
    assert_int_equal(check(settings).code(), DIST_INVALID_ARGUMENT);
    const std::string message = last_message();
    if (!message.ends_with(std::string("Set ") + kNames[i] + " too.")) fail_msg("%s", message.c_str());
  }
  const Files files;
  JobSettings settings(*memory);
  assert_true(check(settings).ok());
  for (int i = 0; i < 3; ++i) {
    const std::pmr::string* const found[] = {&settings.security.ca_file, &settings.security.certificate_file,
                                             &settings.security.key_file};
    assert_string_equal(found[i]->c_str(), files.path(i).c_str());
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(an_unusable_file_is_named_with_its_variable),
      cmocka_unit_test(a_file_that_cannot_be_read_is_named_with_its_variable),
      cmocka_unit_test(a_variable_that_is_not_set_is_named),
  };
  return cmocka_run_group_tests_name("job_settings", tests, nullptr, nullptr);
}
