import type { Tool } from '../core/tool.ts'
import { echo } from './echo.ts'
import { listFiles } from './files/list-files.ts'
import { readFile } from './files/read-file.ts'
import { writeFile } from './files/write-file.ts'
import { runCode } from './run-code/run-code.ts'
import { weather } from './weather.ts'

export { echo, listFiles, readFile, runCode, weather, writeFile }

/** Tools that need no key. The file tools of a user reach only `<root>/<tenant>/<user>`. */
export function builtInTools({ root }: { root: string }): Tool[] {
  return [
    listFiles({ root }),
    readFile({ root }),
    writeFile({ root }),
    runCode(),
    weather(),
    echo(),
  ]
}
