cd exp
export BENCH_ARCH=sm_90a
timeout 200 python3 tests/bench/compare_rows.py --no-torch --kernels layernorm,layernorm_residual,rmsnorm,cross_entropy,softmax --columns 1024,4096,8192,16384 --configs default,xOLD --repeat 11 --json $OUT/rows.json > $OUT/rows.log 2>&1; echo rc $?
timeout 100 python3 tests/bench/compare_rows.py --no-torch --kernels layernorm --dtype fp32 --columns 1024,4096,16384 --configs default,xOLD --repeat 11 --json $OUT/rows32.json > $OUT/rows32.log 2>&1; echo rc $?
timeout 140 python3 tests/bench/compare.py --no-torch --dtype fp32,tf32 --dims 64,128,256 --seqlens 1024,4096 --variants full,causal,bias --configs default,xOLD --repeat 9 --json $OUT/f32.json > $OUT/f32.log 2>&1; echo rc $?
timeout 140 python3 tests/bench/compare.py --no-torch --dtype bf16 --dims 64,128 --seqlens 1024,8192 --variants full,window,document,alibi,bias,keybias --configs a80,a80_xOLD --repeat 9 --json $OUT/a80.json > $OUT/a80.log 2>&1; echo rc $?
grep -h "default\|xOLD" $OUT/rows.log $OUT/rows32.log | cut -c1-120 | head -110
sed -i "s/c in('xOLD','default')/'OLD' in c/" tab3.py
python3 tab3.py $OUT/f32.json; python3 tab3.py $OUT/a80.json
