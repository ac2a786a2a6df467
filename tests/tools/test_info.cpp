// SPDX-License-Identifier: Apache-2.0
// dist-info: its report, its checks, and its output in invalid and hostile environments.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rapidjson/document.h>
#include <sys/socket.h>

#include <cstring>
#include <initializer_list>
#include <set>

#include "tests/tools/launch_support.hpp"

namespace {

// Used beside dist-info, which launch_support.hpp starts.
std::string dist_launch_path, readme_path;

using Variables = std::vector<std::pair<std::string, std::string>>;

std::string line_with(const std::string& text, const std::string& begin) {
  for (const std::string& line : lines_of(text)) {
    if (line.compare(0, begin.size(), begin) == 0) return line;
  }
  fail_msg("no line begins with '%s' in '%s'", begin.c_str(), text.c_str());
  return "";
}

// Asserts that the text is printable ASCII, which it must be if the environment is.
void assert_printable(const std::string& text) {
  for (const char c : text) {
    if (c != '\n' && (c < ' ' || c == 127)) fail_msg("the byte %d in '%s'", c, text.c_str());
  }
}

void assert_json(const std::string& text, rapidjson::Document* out) {
  out->Parse<rapidjson::kParseValidateEncodingFlag | rapidjson::kParseStopWhenDoneFlag>(text.c_str());
  if (out->HasParseError()) fail_msg("no JSON: '%s'", text.c_str());
  assert_true(out->IsObject());
}

// Returns a member of nested objects, found by the keys.
const rapidjson::Value& at(const rapidjson::Value& value, std::initializer_list<const char*> keys) {
  const rapidjson::Value* found = &value;
  for (const char* const key : keys) {
    const auto member = found->FindMember(key);
    if (member == found->MemberEnd()) fail_msg("no key '%s'", key);
    found = &member->value;
  }
  return *found;
}

// ---- Arguments ----

void refuses(const Words& arguments, const std::string& words) {
  Launch info(arguments);
  info.ends(2);
  assert_text(info.all_out, "");
  assert_text(info.all_err, "dist-info: " + words + "\nTry 'dist-info --help' for more information.\n");
}

void arguments(void**) {
  refuses({"--chekc"}, "\"--chekc\" is not an option");
  refuses({"-x"}, "-x is not an option");
  refuses({"--json=1"}, "\"--json=1\" takes no value");
  refuses({"--check", "now"}, "\"now\" is not expected: dist-info takes only options");
  refuses({"a\nb\033"}, "\"a\\nb\\x1b\" is not expected: dist-info takes only options");
}

void help_and_version(void**) {
  for (const char* option : {"--help", "-h"}) {
    Launch help({option});
    help.ends(0);
    for (const auto& line : lines_of(help.all_out)) assert_in_range(line.size(), 0, 80);
    for (const char* name : {"--check", "--json", "--help", "--version", "Exit status: 0"})
      assert_words(help.all_out, name);
  }
  Launch version({"--version"});
  version.ends(0);
  assert_text(version.all_out, "dist-info (libdist) " LIBDIST_VERSION "\n");
  for (const char* option : {"--help", "--json"}) {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    Launch unread({option}, {.output = full});
    unread.ends(125);
    close(full);
    assert_text(unread.all_err, "dist-info: cannot write to standard output: No space left on device\n");
  }
}

// ---- The report ----

void report(void**) {
  Launch info({});
  info.ends(0);
  assert_printable(info.all_out);
  Words labels;
  for (const auto& line : lines_of(info.all_out)) labels.push_back(line.substr(0, line.find(':')));
  // Further modules may be installed.
  std::erase_if(labels, [](const std::string& each) {
    return each.compare(0, 7, "module ") == 0 && each != "module grpc" && each != "module gloo";
  });
  assert_lines(labels, {"version", "library", "feature numa", "feature pinning", "feature isal",
                        "module grpc", "module gloo", "transports", "cpus", "numa", "simd", "clock", "limits",
                        "cluster", "environment"});
  assert_text(line_with(info.all_out, "version:"), "version:            " LIBDIST_VERSION);
  assert_words(line_with(info.all_out, "library:"), "/libdist.so");
  assert_words(line_with(info.all_out, "cluster:"), "none; a strategy in this process has no peers");
}

void missing_modules(void**) {
  Launch info({}, {.environment = {{"DIST_MODULE_FOLDER", "/no/such\nfolder"}}});
  info.ends(0);
  assert_printable(info.all_out);
  const std::string grpc = line_with(info.all_out, "module grpc:");
  assert_words(grpc, "no: DIST_MODULE_FOLDER is \"/no/such\\nfolder\", but libdist-grpc.so was not found");
  assert_words(line_with(info.all_out, "transports:"), "none");
  assert_words(line_with(info.all_out, "environment:"), "DIST_MODULE_FOLDER");
}

// The report's CPUs are those of the affinity mask.
void affinity(void**) {
  cpu_set_t all;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &all)) ++cpu;
  CPU_SET(cpu, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  Launch info({"--json"});
  info.ends(0);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  rapidjson::Document json;
  assert_json(info.all_out, &json);
  assert_int_equal(at(json, {"cpus", "allowed"}).GetInt(), 1);
  assert_int_equal(at(json, {"cpus", "usable"}).GetInt(), 1);
  assert_string_equal(at(json, {"cpus", "list"}).GetString(), std::to_string(cpu).c_str());
  assert_int_equal(at(json, {"cpus", "cores"}).GetInt(), 1);
}

void collect_keys(const rapidjson::Value& value, std::set<std::string>* keys) {
  if (value.IsArray()) {
    for (const auto& each : value.GetArray()) collect_keys(each, keys);
  } else if (value.IsObject()) {
    for (const auto& each : value.GetObject()) {
      keys->insert(each.name.GetString());
      collect_keys(each.value, keys);
    }
  }
}

void json(void**) {
  Launch info({"--json", "--check"}, {.environment = {{"TF_CONFIG", "{"}}});
  info.ends(1);
  rapidjson::Document found;
  assert_json(info.all_out, &found);
  assert_string_equal(at(found, {"version"}).GetString(), LIBDIST_VERSION);
  assert_string_equal(at(found, {"cluster", "source"}).GetString(), "TF_CONFIG");
  assert_true(at(found, {"cluster", "error"}).IsString());
  assert_true(at(found, {"cluster", "self"}).IsNull());
  assert_false(at(found, {"check", "ok"}).GetBool());
  const auto findings = at(found, {"check", "findings"}).GetArray();
  assert_string_equal(at(findings[0], {"subject"}).GetString(), "cluster");
  assert_string_equal(at(findings[0], {"outcome"}).GetString(), "problem");
  // The README describes every key.
  std::set<std::string> keys;
  collect_keys(found, &keys);
  const std::string readme = text_of_file(readme_path);
  for (const std::string& key : keys) assert_words(readme, "`" + key + "`");
}

// ---- Checks ----

// Returns the lines that begin with "problem", without that word.
Words problems(const std::string& text) {
  Words found;
  for (const std::string& line : lines_of(text)) {
    const bool known = line.compare(0, 9, "ok       ") == 0 || line.compare(0, 9, "note     ") == 0 ||
                       line.compare(0, 9, "problem  ") == 0;
    if (!known) fail_msg("no outcome in '%s'", line.c_str());
    if (line[0] == 'p') found.push_back(line.substr(9));
  }
  return found;
}

// Asserts that there is one problem, which begins with this text.
void finds(const Variables& environment, const std::string& words, Given given = {}) {
  given.environment = environment;
  Launch info({"--check"}, given);
  info.ends(1);
  assert_text(info.all_err, "");
  assert_printable(info.all_out);
  const Words found = problems(info.all_out);
  if (found.size() != 1 || found[0].compare(0, words.size(), words) != 0)
    fail_msg("not the one problem '%s' in '%s'", words.c_str(), info.all_out.c_str());
}

std::string two_workers(const std::string& first, const std::string& second) {
  return R"({"cluster": {"worker": [")" + first + R"(", ")" + second +
         R"("]}, "task": {"type": "worker", "index": 0}})";
}

void clusters(void**) {
  finds({{"TF_CONFIG", "[1"}}, "cluster: TF_CONFIG: TF_CONFIG");
  finds({{"TF_CONFIG", ""}}, "cluster: TF_CONFIG: TF_CONFIG");
  finds({{"TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1"]}})"}},
        "cluster: TF_CONFIG: the cluster has 1 task, but the task type of this process is not set.");
  finds(
      {{"TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 7}})"}},
      "cluster: TF_CONFIG: ");
  finds({{"TF_CONFIG", two_workers("127.0.0.1:40001", "127.0.0.1:40001")}},
        "cluster: worker 0 and worker 1 have the same address, \"127.0.0.1:40001\"");
  finds({{"TF_CONFIG", two_workers("127.0.0.1:40001", "127.0.0.1")}},
        "cluster: the address of worker 1 is \"127.0.0.1\", but must be host:port");
  finds({{"DIST_RENDEZVOUS", "127.0.0.1:40001"}, {"DIST_RANK", "2"}, {"DIST_SIZE", "2"}},
        "cluster: DIST_RENDEZVOUS: the rank (DIST_RANK) is 2, but must be 0 to 1");
  finds({{"SLURM_STEP_NODELIST", "n[1-"}}, "cluster: SLURM_STEP_NODELIST: ");
}

void settings(void**) {
  finds({{"DIST_REPLICAS", "0"}}, "settings: DIST_REPLICAS is \"0\", but must be");
  finds({{"DIST_TRANSPORT", "no\033such"}}, "settings: ");
  finds({{"DIST_TLS_CA", "/no/such/file"}}, "settings: DIST_TLS_CA: /no/such/file: ");
  finds({{"DIST_TLS_CA", "/proc/self/cmdline"}}, "settings: DIST_TLS_CA: ");
  finds({{"TF_CONFIG", two_workers("127.0.0.1:40001", "127.0.0.1:40002")}, {"DIST_TRANSPORT", "none"}},
        "settings: DIST_TRANSPORT is none, but the cluster has 2 tasks");
}

void names(void**) {
  finds({{"TF_CONFIG", two_workers("127.0.0.1:40001", "no-such-host.invalid:40002")},
         {"DIST_PLAINTEXT", "1"},
         {"DIST_JOB_SECRET", "secret"}},
        "names: the host name \"no-such-host.invalid\" of worker 1 does not resolve: ");
}

// Returns a socket that listens on a port of loopback.
int listen_somewhere(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  assert_int_equal(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

void ports(void**) {
  uint16_t port = 0;
  const int taken = listen_somewhere(&port);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  finds({{"TF_CONFIG", two_workers(address, "127.0.0.1:1")}},
        "port: this process cannot listen on \"" + address + "\", from TF_CONFIG: the port is in use");
  finds({{"DIST_RENDEZVOUS", address}, {"DIST_RANK", "0"}, {"DIST_SIZE", "2"}},
        "port: this process cannot listen on \"" + address + "\", from DIST_RENDEZVOUS: ");
  finds({{"DIST_BIND_ADDRESS", address}}, "port: this process cannot listen on \"" + address +
                                              "\", from DIST_BIND_ADDRESS: the port is in use");
  finds({{"DIST_BIND_ADDRESS", "here"}}, "port: DIST_BIND_ADDRESS is \"here\", but must be host:port");
  close(taken);
  Launch later({"--check"}, {.environment = {{"TF_CONFIG", two_workers(address, "127.0.0.1:1")}}});
  later.ends(0);
}

void security(void**) {
  finds({{"TF_CONFIG", two_workers("192.0.2.1:40001", "192.0.2.2:40001")}},
        "security: the address of worker 0 is \"192.0.2.1:40001\", which is not a loopback address, so "
        "connections need TLS");
  finds({{"TF_CONFIG", two_workers("192.0.2.1:40001", "192.0.2.2:40001")}, {"DIST_PLAINTEXT", "1"}},
        "security: the address of worker 0 is \"192.0.2.1:40001\", which is not a loopback address, so plain "
        "text needs a secret");
}

void limits(void**) {
  std::string addresses;
  for (int i = 1; i <= 20; ++i)
    addresses += (i == 1 ? "\"" : ", \"") + ("127.0.0.1:" + std::to_string(i)) + "\"";
  finds({{"TF_CONFIG",
          R"({"cluster": {"worker": [)" + addresses + R"(]}, "task": {"type": "worker", "index": 0}})"},
         {"DIST_BIND_ADDRESS", "127.0.0.1:40001"}},
        "limits: RLIMIT_NOFILE is 128, but a worker of 20 tasks needs about 224 descriptors. Raise it",
        {.most_files = 128});
  Launch replicas({"--check"}, {.environment = {{"DIST_REPLICAS", "100000"}}});
  replicas.ends(0);
  assert_words(line_with(replicas.all_out, "note     cpus:"),
               "DIST_REPLICAS is 100000, but this process can");
}

void link_modules(void**) {
  char made[] = "/tmp/dist-info-XXXXXX";
  assert_non_null(mkdtemp(made));
  const std::string file = std::string(made) + "/libdist-mine.so";
  close(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  close(open((std::string(made) + "/libdist-\033[2J.so").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Launch plain({"--json"});
  plain.ends(0);
  rapidjson::Document json;
  assert_json(plain.all_out, &json);
  std::string grpc = at(at(json, {"modules"})[0], {"file"}).GetString();
  const std::string folders = grpc.substr(0, grpc.rfind('/')) + ":" + made;
  Launch info({}, {.environment = {{"DIST_MODULE_FOLDER", folders}}});
  info.ends(0);
  assert_printable(info.all_out);
  assert_text(line_with(info.all_out, "module mine:"), "module mine:        " + file);
  assert_words(line_with(info.all_out, "transports:"), ", mine");
  // The file is empty.
  finds({{"DIST_MODULE_FOLDER", folders}, {"DIST_TRANSPORT", "mine"}}, "settings: ");
  for (const std::string& each : {file, std::string(made) + "/libdist-\033[2J.so"}) unlink(each.c_str());
  rmdir(made);
}

// ---- The trial ----

void works(void**) {
  Launch info({"--check"}, {.environment = {{"DIST_JOB_SECRET", "do not print me"}}});
  info.ends(0);
  assert_int_equal(problems(info.all_out).size(), 0);
  assert_words(line_with(info.all_out, "ok       trial:"),
               "two workers on 127.0.0.1 have summed tensors over shm");
  assert_null(std::strstr(info.all_out.c_str(), "do not print me"));
  Launch by_grpc({"--check", "--json"}, {.environment = {{"DIST_TRANSPORT", "grpc"}}});
  by_grpc.ends(0);
  rapidjson::Document json;
  assert_json(by_grpc.all_out, &json);
  assert_true(at(json, {"check", "ok"}).GetBool());
  const auto& trial = at(json, {"check", "trial"});
  assert_string_equal(at(trial, {"transport"}).GetString(), "grpc");
  assert_true(at(trial, {"all_reduce_ns"}).GetInt64() > 0);
  assert_true(at(trial, {"total_ns"}).GetInt64() > at(trial, {"all_reduce_ns"}).GetInt64());
  std::set<std::string> keys;
  collect_keys(json, &keys);
  const std::string readme = text_of_file(readme_path);
  for (const std::string& key : keys) assert_words(readme, "`" + key + "`");
}

// Tasks of dist-launch, whose ports are held by the launcher.
void works_as_tasks(void**) {
  const std::string info = launcher_path;
  launcher_path = dist_launch_path;
  Launch launch({"-n2", "--", info, "--check"});
  launch.ends(0);
  launcher_path = info;
  assert_words(launch.all_out, "[worker 1] ok       cluster: TF_CONFIG: 2 tasks; this process is worker 1\n");
  assert_words(launch.all_out, "[worker 0] ok       port: this process can listen on \"127.0.0.1:");
}

void without_modules(void**) {
  Launch info({"--check"}, {.environment = {{"DIST_MODULE_FOLDER", "/no/such/folder"}}});
  info.ends(1);
  assert_words(line_with(info.all_out, "problem  settings:"),
               "libdist-grpc.so was not found at /no/such/folder");
}

bool has_ended(pid_t pid) {
  siginfo_t end = {};
  return waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0;
}

// dist-info ends even if a process of its trial is stopped.
void stopped_processes(void**) {
  Launch info({"--check"});
  const std::string pid = std::to_string(info.pid);
  const std::string children = "/proc/" + pid + "/task/" + pid + "/children";
  pid_t stopped = 0;
  while (stopped == 0) {
    const std::string child = text_of_file(children);
    if (has_ended(info.pid)) skip_because("the processes ended before they could be stopped");
    const std::string words =
        child.empty() ? "" : text_of_file("/proc/" + std::to_string(std::stoi(child)) + "/cmdline");
    if (words.find("--trial-process") == std::string::npos) continue;
    stopped = std::stoi(child);
    kill(stopped, SIGSTOP);
  }
  info.ends(1);
  assert_words(info.all_out, "it has not ended within 30 s");
  until_gone(stopped);
}

// ---- TLS ----

std::string folder;

bool shell(const std::string& command) {
  return system(("cd '" + folder + "' && (" + command + ") > log 2>&1").c_str()) == 0;
}

// Makes an authority, a certificate for the names with the given further options, and its key.
bool make_certificate(const std::string& name, const std::string& names, const std::string& options) {
  const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";
  return shell("test -e ca || openssl req -x509 " + key +
               "-keyout ca.key -out ca -subj /CN=authority -days 2") &&
         shell("openssl req " + key + "-keyout " + name + ".key -out csr -subj /CN=" + name +
               " && printf 'subjectAltName=" + names +
               "' > ext && openssl x509 -req -in csr -CA ca -CAkey ca.key " +
               "-CAcreateserial -extfile ext " + options + " -out " + name + ".crt");
}

Variables tls(const std::string& certificate, const std::string& key) {
  return {{"DIST_TLS_CA", folder + "/ca"},
          {"DIST_TLS_CERTIFICATE", folder + "/" + certificate + ".crt"},
          {"DIST_TLS_KEY", folder + "/" + key + ".key"},
          {"TF_CONFIG", two_workers("127.0.0.1:40001", "127.0.0.1:40002")}};
}

void certificates(void**) {
  char made[] = "/tmp/dist-info-XXXXXX";
  assert_non_null(mkdtemp(made));
  folder = made;
  if (!shell("openssl version")) skip_because("openssl is not installed");
  assert_true(make_certificate("good", "IP:127.0.0.1", "-days 1"));
  assert_true(make_certificate("other", "DNS:other.example", "-days 1"));
  assert_true(make_certificate("old", "IP:127.0.0.1", "-days -1"));
  Launch good({"--check"}, {.environment = tls("good", "good")});
  good.ends(0);
  assert_words(line_with(good.all_out, "ok       tls:"),
               "is valid, and the key belongs to it; it is for \"127.0.0.1\"");
  finds(tls("other", "other"), "tls: the certificate DIST_TLS_CERTIFICATE (" + folder +
                                   "/other.crt) is not for 127.0.0.1; it is for other.example. Set");
  finds(tls("old", "old"), "tls: the certificate DIST_TLS_CERTIFICATE (" + folder + "/old.crt) expired on ");
  finds(tls("good", "other"), "settings: ");
  Variables gloo_variables = tls("good", "good");
  gloo_variables.emplace_back("DIST_TRANSPORT", "gloo");
  Launch gloo({"--check"}, {.environment = gloo_variables});
  gloo.ends(1);
  assert_words(line_with(gloo.all_out, "problem  settings:"), "gloo");
  assert_true(shell("rm -r '" + folder + "'") || access(made, F_OK) != 0);
}

// ---- Hostile environments ----

void hostile(void**) {
  const std::string deep(100000, '[');
  const std::string control = "\001\033[2J\r\n\377\300\200";
  std::string many = R"({"cluster": {"worker": [)";
  for (int i = 0; i < 6000; ++i) many += (i == 0 ? "\"h" : ",\"h") + std::to_string(i) + ".invalid:1\"";
  many += R"(]}, "task": {"type": "worker", "index": 0}})";
  const Variables each = {
      {"TF_CONFIG", deep},
      {"TF_CONFIG", R"({"cluster": {")" + control + R"(": ["a:1"]}})"},
      {"TF_CONFIG", R"({"cluster": {"worker": [")" + control + R"("]}})"},
      {"TF_CONFIG", R"({"cluster": {"worker": ["\u001b[2J:1"]}, "task": {"type": "worker", "index": 0}})"},
      {"TF_CONFIG", R"({"cluster": {"worker": {"-1": "a:1"}}, "task": {"type": "worker", "index": -1}})"},
      {"TF_CONFIG", R"({"task": {"type": "worker", "index": 99999999999}})"},
      {"TF_CONFIG", many},
      {"SLURM_STEP_NODELIST", "n[0-4000000000]"},
      {"SLURM_STEP_NODELIST", control},
      {"DIST_RENDEZVOUS", std::string(100000, 'a')},
      {"DIST_RENDEZVOUS", control},
      {"DIST_BIND_ADDRESS", std::string(100000, ':')},
      {"DIST_BIND_ADDRESS", control + ":1"},
      {"DIST_MODULE_FOLDER", std::string(100000, '/')},
      {"DIST_MODULE_FOLDER", control},
      {"DIST_TRANSPORT", "../../../tmp/x"},
      {"DIST_TRANSPORT", std::string(100000, 'x')},
      {"DIST_JOB_SECRET", std::string(100000, 's')},
      {"DIST_LEASE_SECONDS", "1e999"},
      {"DIST_REPLICAS", "-2147483648"},
      {"DIST_TLS_KEY", "/dev/zero"},
      {"DIST_TLS_CERTIFICATE", "/"},
  };
  for (const auto& variable : each) {
    Launch info({"--check", "--json"}, {.environment = {variable}});
    info.all_out = rest_of(info.out);
    info.all_err = rest_of(info.err);
    const int status = info.end();
    if (status != 1) {
      fail_msg("%s=%.80s: ended with %d: %s", variable.first.c_str(), variable.second.c_str(), status,
               info.all_err.c_str());
    }
    assert_text(info.all_err, "");
    rapidjson::Document json;
    assert_json(info.all_out, &json);
    for (const auto& finding : at(json, {"check", "findings"}).GetArray()) {
      for (const char c : std::string(at(finding, {"text"}).GetString()))
        assert_true(static_cast<unsigned char>(c) >= ' ' && c != 127);
      assert_in_range(std::strlen(at(finding, {"text"}).GetString()), 1, 4096);
    }
    assert_in_range(at(json, {"check", "findings"}).Size(), 1, 40);
  }
}

// Users must not start the processes of the trial.
void trial_processes(void**) {
  for (const Words& words : {Words{}, Words{"worker"}, Words{"worker", "0"}, Words{"x", "0", "127.0.0.1:1"},
                             Words{"worker", "0", "nowhere"}, Words{"settings", "nowhere", "127.0.0.1:1"}}) {
    Launch info(Words{"--trial-process"} + words);
    info.ends(1);
    assert_text(info.all_out, "");
    assert_true(info.all_err.size() > 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  launcher_path = argv[1];
  dist_launch_path = argv[2];
  readme_path = argv[3];
  constexpr std::size_t kWithoutGrpc = 8;
  const CMUnitTest tests[] = {
      cmocka_unit_test(arguments),
      cmocka_unit_test(help_and_version),
      cmocka_unit_test(report),
      cmocka_unit_test(missing_modules),
      cmocka_unit_test(affinity),
      cmocka_unit_test(json),
      cmocka_unit_test(without_modules),
      cmocka_unit_test(trial_processes),
      // The following ones need workers that are processes.
      cmocka_unit_test(clusters),
      cmocka_unit_test(settings),
      cmocka_unit_test(names),
      cmocka_unit_test(ports),
      cmocka_unit_test(security),
      cmocka_unit_test(limits),
      cmocka_unit_test(link_modules),
      cmocka_unit_test(works),
      cmocka_unit_test(works_as_tasks),
      cmocka_unit_test(stopped_processes),
      cmocka_unit_test(certificates),
      cmocka_unit_test(hostile),
  };
  constexpr std::size_t kAll = sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("tests", tests, LIBDIST_HAS_GRPC ? kAll : kWithoutGrpc, nullptr, nullptr);
}
