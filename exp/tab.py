import json,sys,math
rows={}
for f in sys.argv[1:]:
    d=json.load(open(f))
    if isinstance(d,dict) and 'cells' not in d: d=list(d.values())[0] if 'compare' not in d else d['compare']
    for c in d['cells']:
        if 'ms' not in c: print('BAD',c); continue
        rows.setdefault((c.get('dim') or c.get('head_dim'),c.get('variant')),{}).setdefault(c.get('config'),{})[c['seqlen']]=c['rate']
confs=[]
for r in rows.values():
    for x in r:
        if x not in confs: confs.append(x)
base=[c for c in confs if c in('xOLD','default')][-1]
confs=[c for c in confs if c!=base]
print('base',base,'|',confs)
geo={}
for k,r in rows.items():
    print(*k,'|','  '.join(x[1:]+' '+' '.join('%.3f'%(r[x][s]/r[base][s]) for s in sorted(r[x]) if s in r[base]) for x in confs if x in r))
    for x in confs:
        if x in r:
            for s in r[x]: geo.setdefault((k[0],x),[]).append(math.log(r[x][s]/r[base][s]))
for k,v in geo.items(): print('geo',*k,'%.4f'%math.exp(sum(v)/len(v)))
