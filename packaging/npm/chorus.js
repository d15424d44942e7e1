#!/usr/bin/env node
'use strict'
// Runs the program of this platform, which npm installed beside this package as an optional dependency.
const { spawn } = require('node:child_process')
const { constants } = require('node:os')

function findBinary() {
  if (process.env.CHORUS_BINARY) return process.env.CHORUS_BINARY
  const platform = `${process.platform}-${process.arch}`
  try {
    return require.resolve(`@chorushub/${platform}/chorus`)
  } catch {
    console.error(
      `chorus: there is no program for ${platform} beside this package; it may have been installed with ` +
        '--omit=optional, or there is none for this platform. Set CHORUS_BINARY to a chorus of your own.',
    )
    process.exit(1)
  }
}

const binary = findBinary()
const args = process.argv.slice(2)
// In place of this process where Node can: then signals, exit codes and the parent are those of the program itself.
if (process.execve) {
  try {
    process.execve(binary, [binary, ...args], process.env)
  } catch (error) {
    console.error(`chorus: ${binary} cannot be run: ${error.message}`)
    process.exit(1)
  }
}
const child = spawn(binary, args, { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(`chorus: ${binary} cannot be run: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code))
