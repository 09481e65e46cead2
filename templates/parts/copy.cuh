// to = from, all blocks of the launch together
template <class Blk, class To, class From>
FH_DEVICE void copy(Blk& block, To to, From from, i64 count) {
  const i64 share = (count + block.count - 1) / block.count;
  const i64 begin = min_(block.index * share, count);
  block.phase(static_cast<int>(min_(share, count - begin)), [&](int k) { to[begin + k] = from[begin + k]; });
}
