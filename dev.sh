lscpu | grep -i "model name\|^CPU(s)"; grep -o "amx[a-z_0-9]*" /proc/cpuinfo | sort -u | tr '\n' ' '
cat > /tmp/pl.c <<'E'
#include <fa/fa.h>
#include <stdio.h>
#define FA_NAME b
#define FA_DTYPE FA_BF16
#define FA_HEAD_DIM 64
#include <fa/attention.h>
int main(void){ static fa_bf16 x[64*100]; static fa_bf16 o[6400]; fa_attention_args a=fa_attention_defaults(); a.q=a.k=a.v=fa_tensor_bhsd(x,1,100,64); a.o=fa_tensor_bhsd(o,1,100,64); a.batch=a.heads=a.heads_kv=1; a.seqlen_q=a.seqlen_k=100; fa_plan p; printf("%d ", b_plan(&a,&p)); puts(p.schedule); return b_forward(&a,0);}
E
cc -O2 -Iinclude /tmp/pl.c -o /tmp/pl -lm -lpthread && /tmp/pl; cc --version | head -1
(make -j16 build/tests/contracts build/tests/forward_05 build/tests/forward_random build/tests/forward_11 > /tmp/mk.log 2>&1; tail -1 /tmp/mk.log | cut -c1-100)
for t in contracts forward_05 forward_random forward_11; do timeout 100 build/tests/$t > $OUT/$t.log 2>&1; echo "$t $? $(grep -c "^ok" $OUT/$t.log) $(grep -c "^not ok" $OUT/$t.log)"; done
python3 tests/bench/compare.py --device cpu --dtype bf16 --dims 64,128 --seqlens 2048 --repeat 9 > $OUT/cpu.txt 2>&1; grep "^bf16\|WRONG" $OUT/cpu.txt
FA_CPU_ISA=avx512 python3 tests/bench/compare.py --device cpu --dtype bf16 --dims 64,128 --seqlens 2048 --repeat 5 --no-torch > $OUT/cpu2.txt 2>&1; grep "^bf16\|WRONG" $OUT/cpu2.txt
which perf
