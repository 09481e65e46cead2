constexpr i64 BRANCHES = 4;  // direction, magnitude, order type, urgency
constexpr i64 ACTIONS = 3;

// The position after an action: old + f (target - old), target = {short, flat, long} x {1/3, 2/3, 1} and
// f = {market: 1, half: 1/2, none: 0} x urgency {1, 1/2, 1/4}.
FH_DEVICE f32 position_after(f32 old, i32 direction, i32 magnitude, i32 order, i32 urgency) {
  const f32 target = static_cast<f32>((direction - 1) * (magnitude + 1)) / 3.0f;
  const f32 filled = order == 0 ? 1.0f : (order == 1 ? 0.5f : 0.0f);
  const f32 share = urgency == 0 ? filled : (urgency == 1 ? 0.5f * filled : 0.25f * filled);
  return share == 1.0f ? target : old + share * (target - old);
}
