// ComputeSDK with its E2B provider: the quick start of its README.
import { e2b } from '@computesdk/e2b'
import { compute } from 'computesdk'

compute.setConfig({
  provider: e2b({ apiKey: process.env.E2B_API_KEY }),
})

const sandbox = await compute.sandbox.create()

const result = await sandbox.runCommand(`python - <<'PY'
import pandas as pd
import numpy as np

data = {'A': [1, 2, 3], 'B': [4, 5, 6]}
df = pd.DataFrame(data)
print(df)
print(f"Sum: {df.sum().sum()}")
PY`)

console.log(result.stdout)
await sandbox.destroy()
