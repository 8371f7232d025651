// Schedulers by name.
#include "lb/scheduler.h"

#include <set>

#include <gtest/gtest.h>

namespace heddle::lb {
namespace {

TEST(SchedulerPresets, NamesLeadToPresetsAndBack) {
  std::set<std::string_view> names;
  for (const SchedulerPreset& preset : kSchedulerPresets) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name << " twice";
    ASSERT_TRUE(scheduler_named(preset.name).has_value()) << preset.name;
    EXPECT_EQ(*scheduler_named(preset.name), preset.scheduler);
    EXPECT_EQ(name_of(preset.scheduler), preset.name) << "two presets are the same scheduler";
    EXPECT_FALSE(preset.meaning.empty());
  }
}

TEST(SchedulerPresets, KnownNamesMeanWhatThePeersMean) {
  EXPECT_EQ(*scheduler_named("ecmp"), (Scheduler{Granularity::kFlow, Choice::kHash}));
  EXPECT_EQ(*scheduler_named("rps"), (Scheduler{Granularity::kPacket, Choice::kRandom}));
  EXPECT_EQ(*scheduler_named("round-robin"), (Scheduler{Granularity::kPacket, Choice::kRoundRobin}));
}

TEST(SchedulerPresets, UnknownNamesAreNone) {
  for (const std::string_view name : {"", "ECMP", "ecmp ", "least-queue"}) {
    EXPECT_FALSE(scheduler_named(name).has_value()) << name;
  }
}

TEST(SchedulerPresets, ACombinationWithoutANameIsCustom) {
  EXPECT_EQ(name_of(Scheduler{Granularity::kPacket, Choice::kHash}), "custom");
}

TEST(SchedulerPresets, TheDefaultIsEcmp) { EXPECT_EQ(name_of(Scheduler{}), "ecmp"); }

}  // namespace
}  // namespace heddle::lb
