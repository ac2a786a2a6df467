// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include "errors.hpp"

namespace golden {
namespace {

constexpr std::size_t kShown = 300;  // bytes of an outcome in a message

std::string text_of_end(const Case& one) {
  switch (one.end) {
    case End::kHang: return "it hung";
    case End::kCrash: return "the process died";
    default: return to_text(*one.outcome, kShown);
  }
}

class Judge {
 public:
  Judge(const Case& one, Judgement& judgement) : case_(one), judgement_(judgement) {}

  void judge(const Answer& answer) {
    if (answer.how != Answer::How::kPlayed) return fault(answer.text);
    rapidjson::Document line;
    line.Parse<rapidjson::kParseFullPrecisionFlag>(answer.text.data(), answer.text.size());
    if (line.HasParseError()) return fault("an answer that is no JSON: " + answer.text.substr(0, kShown));
    if (const Json* const unknown = find(line, "unknown")) {
      fault("the replay does not know " + std::string(text_of(*unknown)));
    } else if (const Json* const malformed = find(line, "malformed")) {
      throw Malformed{std::string(text_of(*malformed))};
    } else if (const Json* const recorded = find(line, "recorded")) {
      judge_recorded(*recorded);
    } else {
      judge_failed(member(line, "status").GetInt(), text_of(member(line, "message")));
    }
    judge_afterwards(find(line, "afterwards"));
  }

 private:
  void judge_recorded(const Json& recorded) {
    if (case_.end != End::kExpected) return differ(to_text(recorded, kShown));
    judgement_.differences = compare(*case_.outcome, recorded);
  }

  void judge_failed(dist_status status, std::string_view message) {
    if (case_.end == End::kError && same_kind(exception_of(*case_.outcome), status)) return;
    differ(std::string(dist_status_name(status)) + ": " + std::string(message));
  }

  // After a failure that made TensorFlow's program useless, libdist's program continues.
  void judge_afterwards(const Json* trouble) {
    if (trouble != nullptr) return fault("afterwards: " + std::string(text_of(*trouble)));
    if (case_.afterwards == nullptr || find(*case_.afterwards, "error") == nullptr) return;
    judgement_.differences.push_back(
        {"afterwards", "afterwards", to_text(*case_.afterwards, kShown), "the strategy works"});
  }

  void differ(std::string came) {
    judgement_.differences.push_back({"outcome", "outcome", text_of_end(case_), std::move(came)});
  }

  void fault(std::string what) {
    judgement_.faults.push_back({"outcome", "outcome", text_of_end(case_), std::move(what)});
  }

  const Case& case_;
  Judgement& judgement_;
};

}  // namespace

Judgement judge(const Case& one, const Answer& answer) {
  Judgement judgement;
  try {
    Judge(one, judgement).judge(answer);
    return judgement;
  } catch (const Unknown& unknown) {
    judgement.faults.push_back({"outcome", "outcome", "", "this program does not know " + unknown.what});
  } catch (const Malformed& error) {
    judgement.faults.push_back({"outcome", "outcome", "", "malformed: " + error.what});
    judgement.malformed = true;
  }
  return judgement;
}

}  // namespace golden
